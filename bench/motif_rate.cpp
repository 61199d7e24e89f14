// Messages per second of the skeleton engine on one core, on a machine as large as Aurora.
//
//   motif-rate rate [ROUNDS]   65,536 ranks, LogGOPSim's size: dissemination barriers, whose 16 rounds all ranks wait
//                              for one by one. The figure is of the level `links`; `latency` is printed beside it.
//   motif-rate halo [STEPS [CORES]]   884,736 ranks, 96 a node: exchange with 26 neighbours, all messages of a step
//                              under way at once; on the level `links`, on both cores if nothing else is said.
//
// Seconds are CPU seconds where one core is used, which a busy computer disturbs less, and with two those of the clock
// on the wall. The anchor is a fixed loop of dependent loads, timed before each round (bench/dependent_loads.hpp).
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/dependent_loads.hpp"
#include "core/motif/collective/collectives.hpp"
#include "core/motif/workload/halo.hpp"
#include "testing/motif_stage.hpp"

namespace dryfly::motif {
namespace {

fabric::SampleMachine aurora() {
  fabric::SampleMachine machine;
  machine.groups = 166;
  machine.switches = 32;
  machine.nodes = 64;
  machine.nics_per_node = 8;
  return machine;
}

double seconds(std::uint32_t cores) {
  if (cores == 1) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Rate {
  double messages_per_s;
  double events_per_s;
  std::uint64_t fingerprint;
};

Rate run(Way way, std::uint32_t nodes, std::uint32_t ranks_per_node, const Job::Program& program,
         std::uint32_t cores = 1) {
  MotifStage stage(way, nodes, ranks_per_node, aurora(), {}, cores);
  const double begun = seconds(cores);
  const JobTotals totals = stage.run(program).totals();
  const double took = seconds(cores) - begun;
  return {static_cast<double>(totals.messages) / took, static_cast<double>(totals.events) / took,
          stage.job().fingerprint()};
}

// What stands beside the figures. LogGOPSim has no topology, and is published with more than a million events a second
// on one processor of its time (T. Hoefler, T. Schneider and A. Lumsdaine: LogGOPSim - Simulating Large-Scale
// Applications in the LogGOPS Model, HPDC 2010, doi:10.1145/1851476.1851564, abstract; certainty M, no text of it was
// at hand). Of SMPI no such rate was found; bench/alltoall_256.py has what an exchange among 256 ranks on a dragonfly
// takes it: 5.3 s for 255 * 256 messages.
constexpr double loggopsim_events_per_s = 1e6;
constexpr double smpi_messages_per_s = 255 * 256 / 5.3;

void print_others(double messages_per_s, double events_per_s) {
  std::printf(
      "beside it: LogGOPSim over %.0f M events/s without topology, here %.1f times that; SimGrid SMPI %.0f messages/s "
      "of an alltoall on 256 ranks, here %.0f times that\n",
      loggopsim_events_per_s / 1e6, events_per_s / loggopsim_events_per_s, smpi_messages_per_s,
      messages_per_s / smpi_messages_per_s);
}

int bench_rate(int rounds) {
  DependentLoads dependent;
  std::vector<double> loads_per_s;
  std::vector<double> rates;
  std::vector<double> events;
  const auto program = [](Rank& me) -> Task {
    const Communicator all = world(me);
    for (int turn = 0; turn < 4; ++turn) co_await dissemination_barrier(me, all);
  };
  for (int round = 0; round < rounds; ++round) {
    loads_per_s.push_back(dependent.per_s());
    const Rate cheap = run(Way::endpoints, 8192, 8, program);
    const Rate links = run(Way::links, 8192, 8, program);
    rates.push_back(links.messages_per_s);
    events.push_back(cheap.events_per_s);  // as without topology
    std::printf("round %d: latency %.2f M messages/s, %.2f M events/s; links %.2f M messages/s, %.2f M events/s\n",
                round + 1, cheap.messages_per_s / 1e6, cheap.events_per_s / 1e6, links.messages_per_s / 1e6,
                links.events_per_s / 1e6);
    std::fflush(stdout);
  }
  const double thousand_loads = median(loads_per_s) / 1000;
  std::printf("figure %.0f messages/s; anchor thousand-dependent-loads %.0f; ratio %.4g\n", median(rates),
              thousand_loads, median(rates) / thousand_loads);
  print_others(median(rates), median(events));
  return 0;
}

int bench_halo(std::uint64_t steps, std::uint32_t cores) {
  DependentLoads dependent;
  const double thousand_loads = dependent.per_s() / 1000;
  const Grid cube{.sides = {96, 96, 96}};
  const Halo halo{.around = Neighbourhood::of_sizes(cube, Bytes{8}, Bytes{8}, Bytes{8}, true), .steps = steps};
  const double begun = seconds(cores);
  const Rate rate = run(Way::links, 9216, 96, [&](Rank& me) { return exchange_halo(me, halo); }, cores);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "%llu steps of 23.0 million messages on %u cores in %.1f s, machine and ranks included; peak memory "
      "%.2f GiB; fingerprint %016llx\n",
      static_cast<unsigned long long>(steps), cores, seconds(cores) - begun,
      static_cast<double>(usage.ru_maxrss) / (1 << 20), static_cast<unsigned long long>(rate.fingerprint));
  std::printf("figure %.0f messages/s; anchor thousand-dependent-loads %.0f; ratio %.4g\n", rate.messages_per_s,
              thousand_loads, rate.messages_per_s / thousand_loads);
  print_others(rate.messages_per_s, rate.events_per_s);
  return 0;
}

}  // namespace
}  // namespace dryfly::motif

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::max(1, std::atoi(argv[2])) : 0;
  const std::uint32_t cores = argc > 3 && std::atoi(argv[3]) == 1 ? 1 : 2;
  if (what == "rate") return dryfly::motif::bench_rate(count == 0 ? 5 : count);
  if (what == "halo") return dryfly::motif::bench_halo(count == 0 ? 10 : static_cast<std::uint64_t>(count), cores);
  std::fprintf(stderr, "motif-rate rate [ROUNDS] | halo [STEPS [CORES]]\n");
  return 2;
}
