// Packet-hops per second of the packet engine alone, on one core, for one of three machines: adaptive routing,
// congestion management and traffic classes on, acknowledgements on the links, messages of 4 KiB. A packet-hop is one
// data packet over one link, injection and ejection included; acknowledgements and credits never count.
//
// The figure is the median for uniform random targets at 50 % of the injection rate. A random permutation at the same
// rate and uniform traffic at 90 % are printed beside it. Seconds are CPU seconds of this one-threaded process, which
// are wall seconds on an idle box and the same on a busy one; the wall figure stands beside each round. The anchor is
// a fixed loop of dependent loads, timed before each round (bench/dependent_loads.hpp).
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "bench/dependent_loads.hpp"
#include "core/engine/engine.hpp"
#include "core/machine/machine.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/network/packet/regional_network.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/random.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly {
namespace {

constexpr Bytes message{4096};

struct Size {
  const char* name;
  std::uint64_t groups;
  std::uint64_t switches;  // of each group
  std::uint64_t nics;      // of each group
  std::uint64_t global_links;
  std::uint64_t traffic_ps;  // for how long messages are submitted
};

constexpr Size sizes[] = {
    {"1056", 33, 8, 32, 1, 150'000'000},
    {"8320", 65, 16, 128, 2, 30'000'000},
    {"aurora", 166, 32, 512, 2, 5'000'000},
};

struct Load {
  const char* name;
  bool permutation;
  std::uint64_t percent;  // of the injection rate
};

constexpr Load loads[] = {{"uniform 50 %", false, 50}, {"permutation 50 %", true, 50}, {"uniform 90 %", false, 90}};

// Every NIC submits a message at instants drawn around a fixed mean distance. A NIC's draws are its own, so that the
// NICs of a machine may be dealt to several workloads.
class Workload final : public Handler, public TransferSink {
 public:
  Workload(Engine& engine, const Dragonfly& dragonfly, Carrier& network, const Load& load, Instant end, NicId first,
           std::uint32_t count)
      : engine_(engine),
        network_(network),
        nics_(dragonfly.nic_count()),
        first_(first.value),
        submitted_(count),
        end_(end) {
    // At 25 GB/s a message takes 163,840 ps; the distance is uniform between 0 and twice its mean.
    distance_ps_ = static_cast<std::uint32_t>(2 * 163'840 * 100 / load.percent);
    engine.attach(ComponentClass::workload, *this);
    network.connect(*this);
    if (load.permutation) draw_permutation();
    for (std::uint32_t nic = first_; nic < first_ + count; ++nic) schedule_next(nic);
  }

  void handle(Event event) override {
    const auto nic = static_cast<std::uint32_t>(event.key);
    Transfer transfer;
    transfer.source = {nic};
    transfer.target = {target_of(nic)};
    transfer.size = message;
    transfer.ordered = false;
    transfer.handle = nic << 14 | (submitted_[nic - first_]++ & 0x3fff);
    network_.submit(transfer);
    ++messages_;
    schedule_next(nic);
  }
  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override {
    checksum_ += mix(mix(engine_.now().ps) ^ (std::uint64_t{handle} << 8 | switch_hops));
  }
  void acknowledged(std::uint32_t) override { ++done_; }

  std::uint64_t messages() const { return messages_; }
  std::uint64_t done() const { return done_; }
  // Of every message's name, instant of delivery and way: a sum, in whatever order they came.
  std::uint64_t checksum() const { return checksum_; }

 private:
  void schedule_next(std::uint32_t nic) {
    const Instant at = engine_.now() + Duration{1 + draw(nic, 0, distance_ps_)};
    if (at >= end_) return;
    engine_.schedule(at, (static_cast<std::uint64_t>(ComponentClass::workload) << component_class_shift) | nic);
  }
  std::uint32_t target_of(std::uint32_t nic) {
    if (!permutation_.empty()) return permutation_[nic];
    const std::uint32_t target = draw(nic, 1, nics_ - 1);
    return target + (target >= nic ? 1 : 0);
  }
  // Two for each message of a NIC.
  std::uint32_t draw(std::uint32_t nic, std::uint32_t which, std::uint32_t bound) const {
    return random_.below((std::uint64_t{nic} << 32 | submitted_[nic - first_]) * 2 + which, bound);
  }
  // One cycle through all NICs: nobody is its own target.
  void draw_permutation() {
    const RandomStream random{7, 1, Purpose::workload};
    std::vector<std::uint32_t> order(nics_);
    for (std::uint32_t i = 0; i < nics_; ++i) order[i] = i;
    for (std::uint32_t i = nics_ - 1; i > 0; --i) std::swap(order[i], order[random.below(i, i)]);
    permutation_.resize(nics_);
    for (std::uint32_t i = 0; i < nics_; ++i) permutation_[order[i]] = order[(i + 1) % nics_];
  }

  Engine& engine_;
  Carrier& network_;
  std::uint32_t nics_;
  std::uint32_t first_;
  std::vector<std::uint32_t> submitted_;  // by NIC of this workload
  Instant end_;
  std::uint32_t distance_ps_ = 0;
  RandomStream random_{7, 0, Purpose::workload};
  std::vector<std::uint32_t> permutation_;
  std::uint64_t messages_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t checksum_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Result {
  double hops_per_s = 0;
  double hops_per_wall_s = 0;
  double mean_links = 0;
  double events_per_hop = 0;
  std::uint64_t checksum = 0;
};

Spec spec_of(const Size& size) {
  fabric::SampleMachine machine;
  machine.groups = size.groups;
  machine.switches = size.switches;
  machine.nodes = size.nics;
  machine.global_links = size.global_links;
  return machine.spec();
}

Result measure(const Size& size, const Load& load) {
  const Spec spec = spec_of(size);
  Machine machine{spec};
  Engine& engine = machine.engine;
  Network& network = *machine.network;
  const Dragonfly& dragonfly = machine.topology;
  Workload workload{engine, dragonfly, network, load, Instant{size.traffic_ps}, {0}, dragonfly.nic_count()};
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds();
  engine.run(never);
  const double cpu = cpu_seconds() - cpu_start;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const NetworkTotals totals = network.totals();
  DRYFLY_CHECK(workload.done() == workload.messages() && network.at_rest());
  DRYFLY_CHECK(totals.payload_bytes == workload.messages() * message.count);
  const auto hops = static_cast<double>(totals.piece_hops);
  return {hops / cpu, hops / took.count(), hops / static_cast<double>(totals.pieces),
          static_cast<double>(engine.events_run()) / hops, workload.checksum()};
}

// The same in regions, by so many threads.
Result measure_regions(const Size& size, const Load& load, std::uint32_t threads) {
  const Spec spec = spec_of(size);
  const Dragonfly dragonfly{spec};
  RegionalNetwork network{dragonfly, spec};
  std::vector<std::unique_ptr<Workload>> workloads;
  for (std::uint32_t group = 0; group < dragonfly.group_count(); ++group) {
    workloads.push_back(std::make_unique<Workload>(network.engine({group}), dragonfly, network.network({group}), load,
                                                   Instant{size.traffic_ps}, dragonfly.first_nic({group}),
                                                   dragonfly.nics_in({group})));
  }
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds();
  network.run(threads);
  const double cpu = cpu_seconds() - cpu_start;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const NetworkTotals totals = network.totals();
  Result result;
  std::uint64_t messages = 0;
  std::uint64_t done = 0;
  for (const auto& workload : workloads) {
    messages += workload->messages();
    done += workload->done();
    result.checksum += workload->checksum();
  }
  DRYFLY_CHECK(done == messages && network.at_rest() && totals.payload_bytes == messages * message.count);
  const auto hops = static_cast<double>(totals.piece_hops);
  result.hops_per_s = hops / cpu;
  result.hops_per_wall_s = hops / took.count();
  result.mean_links = hops / static_cast<double>(totals.pieces);
  result.events_per_hop = static_cast<double>(network.events_run()) / hops;
  return result;
}

// Wall seconds, as there is no other measure of a speed-up: two cores have to be idle. The rounds of one thread and two
// are interleaved, and each round's deliveries must be those of the network in one part.
int bench_two_cores(const Size& size, int rounds) {
  const Load& load = loads[0];
  const Result whole = measure(size, load);
  std::printf("one part: %.2f million packet-hops/s of wall time, checksum %016llx\n", whole.hops_per_wall_s / 1e6,
              static_cast<unsigned long long>(whole.checksum));
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    const Result one = measure_regions(size, load, 1);
    const Result two = measure_regions(size, load, 2);
    ratios.push_back(two.hops_per_wall_s / one.hops_per_wall_s);
    std::printf(
        "round %d: %llu regions, million packet-hops/s of wall time: one thread %.2f, two %.2f; of CPU time: "
        "%.2f, %.2f\n",
        i + 1, static_cast<unsigned long long>(size.groups), one.hops_per_wall_s / 1e6, two.hops_per_wall_s / 1e6,
        one.hops_per_s / 1e6, two.hops_per_s / 1e6);
    std::fflush(stdout);
    if (one.checksum != whole.checksum || two.checksum != whole.checksum) {
      std::printf("the deliveries differ: one thread %016llx, two threads %016llx\n",
                  static_cast<unsigned long long>(one.checksum), static_cast<unsigned long long>(two.checksum));
      return 1;
    }
  }
  std::printf("figure %.2f times; anchor one-thread 1; ratio %.2f\n", median(ratios), median(ratios));
  return 0;
}

Result median_of(int rounds, const Size& size, const Load& load, std::vector<double>& loads_per_s) {
  DependentLoads dependent;
  std::vector<Result> results;
  for (int i = 0; i < rounds; ++i) {
    loads_per_s.push_back(dependent.per_s());
    results.push_back(measure(size, load));
    std::printf("%-16s round %d: %.2f million packet-hops/s (wall %.2f)\n", load.name, i + 1,
                results.back().hops_per_s / 1e6, results.back().hops_per_wall_s / 1e6);
    std::fflush(stdout);
  }
  std::sort(results.begin(), results.end(),
            [](const Result& a, const Result& b) { return a.hops_per_s < b.hops_per_s; });
  return results[results.size() / 2];
}

// Links on a minimal path, injection and ejection included, for uniform targets among the other NICs: 2 on the same
// switch, 3 in the group. Beyond it a global link starts at the source's switch for one switch in all, and ends at
// the target's likewise: 3 + 2 (1 - 1 / switches).
double minimal_links(const Size& size) {
  const auto switches = static_cast<double>(size.switches);
  const auto nics = static_cast<double>(size.nics);
  const double here = nics / switches - 1;
  const double near = nics - nics / switches;
  const double far = nics * static_cast<double>(size.groups - 1);
  return (here * 2 + near * 3 + far * (5 - 2 / switches)) / (here + near + far);
}

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int bench(const Size& size, int rounds, bool all_loads) {
  std::printf("%llu NICs, adaptive routing, acknowledgements on the links, messages of 4 KiB\n",
              static_cast<unsigned long long>(size.groups * size.nics));
  double figure = 0;
  std::vector<double> loads_per_s;
  for (const Load& load : loads) {
    const bool counts = &load == &loads[0];
    if (!counts && !all_loads) break;
    const Result result = median_of(counts ? rounds : 1, size, load, loads_per_s);
    const double minimal = minimal_links(size);
    std::printf(
        "%-16s median: %.2f million packet-hops/s; %.3f links a packet (minimal %.3f), %.2f events a hop, checksum "
        "%016llx\n",
        load.name, result.hops_per_s / 1e6, result.mean_links, minimal, result.events_per_hop,
        static_cast<unsigned long long>(result.checksum));
    if (!counts) continue;
    figure = result.hops_per_s;
    std::printf("%-16s peak memory: %.0f MB\n", load.name, peak_memory_mb());
    // Detours only ever lengthen a path, by two links at most; uniform traffic at this load takes few.
    if (result.mean_links < minimal * 0.995 || result.mean_links > minimal * 1.15) {
      std::printf("the number of links a packet crosses is not that of this dragonfly\n");
      return 1;
    }
  }
  const double thousand_loads = median(loads_per_s) / 1000;
  std::printf("figure %.0f packet-hops/s; anchor thousand-dependent-loads %.0f; ratio %.4g\n", figure, thousand_loads,
              figure / thousand_loads);
  return 0;
}

// All of Aurora's compute groups, and the messages of a first moment: what is made when first used is made too.
int bench_build(int rounds) {
  DependentLoads dependent;
  std::vector<double> seconds;
  std::vector<double> loads_per_s;
  for (int i = 0; i < rounds; ++i) {
    fabric::SampleMachine machine;
    machine.groups = 166;
    machine.switches = 32;
    machine.nodes = 512;
    loads_per_s.push_back(dependent.per_s());
    const double cpu_start = cpu_seconds();
    const Spec spec = machine.spec();
    Machine whole{spec};
    Engine& engine = whole.engine;
    Network& network = *whole.network;
    const Dragonfly& dragonfly = whole.topology;
    const Load none_yet{"", false, 50};
    Workload workload{engine, dragonfly, network, none_yet, Instant{100'000}, {0}, dragonfly.nic_count()};
    engine.run(never);
    DRYFLY_CHECK(network.at_rest() && workload.messages() > 0);
    seconds.push_back(cpu_seconds() - cpu_start);
    std::printf("aurora-build round %d: %.2f s\n", i + 1, seconds.back());
    std::fflush(stdout);
  }
  const double figure = median(seconds);
  const double million_loads_s = 1e6 / median(loads_per_s);
  std::printf("peak memory: %.0f MB\n", peak_memory_mb());
  std::printf("figure %.3f s; anchor 1000000-dependent-loads %.4f; ratio %.4g\n", figure, million_loads_s,
              million_loads_s / figure);
  return 0;
}

}  // namespace
}  // namespace dryfly

int main(int argc, char** argv) {
  for (const dryfly::Size& size : dryfly::sizes) {
    if (argc > 1 && std::string(argv[1]) == size.name) {
      return dryfly::bench(size, argc > 2 ? std::max(1, std::atoi(argv[2])) : 5, argc < 4);
    }
  }
  if (argc > 1 && std::string(argv[1]) == "build") {
    return dryfly::bench_build(argc > 2 ? std::max(1, std::atoi(argv[2])) : 5);
  }
  if (argc > 2 && std::string(argv[1]) == "two-cores") {
    for (const dryfly::Size& size : dryfly::sizes) {
      if (std::string(argv[2]) == size.name) return dryfly::bench_two_cores(size, argc > 3 ? std::atoi(argv[3]) : 3);
    }
  }
  std::fprintf(stderr,
               "packet-hops 1056|8320|aurora|build [ROUNDS [uniform]], or two-cores 1056|8320|aurora [ROUNDS]\n");
  return 2;
}
