// Packet-hops per second of the packet engine alone, on one core: a balanced dragonfly of 1,056 NICs (33 groups
// of 8 switches of 4 NICs, 4 global links a switch), adaptive routing, acknowledgements on the links, messages of
// 4 KiB. A packet-hop is one data packet over one link, injection and ejection included; acknowledgements and
// credits never count.
//
// Two workloads: uniform random targets at 50 % of the injection rate, and a random permutation at the same rate.
// The figure is the lower of the two medians. Seconds are CPU seconds of this one-threaded process, which are wall
// seconds on an idle box and the same on a busy one; the wall figure stands beside each round.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/fabric/packet_network.hpp"
#include "core/fabric/sample_machine.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/random.hpp"

namespace dryfly {
namespace {

constexpr Bytes message{4096};
constexpr double anchor_hops_per_s = 480'000;  // csg-htsim, same size of dragonfly, without adaptive routing

// Every NIC submits a message at instants drawn around a fixed mean distance.
class Workload final : public Handler, public TransferSink {
 public:
  Workload(Engine& engine, const Dragonfly& dragonfly, Network& network, bool permutation, Instant end)
      : engine_(engine), network_(network), nics_(dragonfly.nic_count()), end_(end) {
    engine.attach(ComponentClass::workload, *this);
    network.connect(*this);
    if (permutation) draw_permutation();
    for (std::uint32_t nic = 0; nic < nics_; ++nic) schedule_next(nic);
  }

  void handle(Event event) override {
    const auto nic = static_cast<std::uint32_t>(event.key);
    Transfer transfer;
    transfer.source = {nic};
    transfer.target = {target_of(nic)};
    transfer.size = message;
    transfer.ordered = false;
    network_.submit(transfer);
    ++messages_;
    schedule_next(nic);
  }
  void delivered(std::uint32_t, std::uint32_t switch_hops) override { last_hops_ += switch_hops; }
  void acknowledged(std::uint32_t) override { ++done_; }

  std::uint64_t messages() const { return messages_; }
  std::uint64_t done() const { return done_; }

 private:
  // 50 % of 25 GB/s: 4,096 bytes each 327,680 ps on average, uniform between 0 and twice that.
  void schedule_next(std::uint32_t nic) {
    const Instant at = engine_.now() + Duration{1 + random_.below(draws_++, 655'360)};
    if (at >= end_) return;
    engine_.schedule(at, (static_cast<std::uint64_t>(ComponentClass::workload) << component_class_shift) | nic);
  }
  std::uint32_t target_of(std::uint32_t nic) {
    if (!permutation_.empty()) return permutation_[nic];
    const std::uint32_t target = random_.below(draws_++, nics_ - 1);
    return target + (target >= nic ? 1 : 0);
  }
  // One cycle through all NICs: nobody is its own target.
  void draw_permutation() {
    std::vector<std::uint32_t> order(nics_);
    for (std::uint32_t i = 0; i < nics_; ++i) order[i] = i;
    for (std::uint32_t i = nics_ - 1; i > 0; --i) std::swap(order[i], order[random_.below(draws_++, i)]);
    permutation_.resize(nics_);
    for (std::uint32_t i = 0; i < nics_; ++i) permutation_[order[i]] = order[(i + 1) % nics_];
  }

  Engine& engine_;
  Network& network_;
  std::uint32_t nics_;
  Instant end_;
  RandomStream random_{7, 0, Purpose::workload};
  std::uint64_t draws_ = 0;
  std::vector<std::uint32_t> permutation_;
  std::uint64_t messages_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t last_hops_ = 0;
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Result {
  double hops_per_s = 0;
  double hops_per_wall_s = 0;
  double mean_links = 0;
  double events_per_hop = 0;
};

Result measure(bool permutation) {
  fabric::SampleMachine machine;
  machine.groups = 33;
  machine.switches = 8;
  machine.nodes = 32;
  machine.global_links = 1;
  const Spec spec = machine.spec();
  const Dragonfly dragonfly{spec};
  Engine engine;
  PacketNetwork network{engine, dragonfly, spec};
  Workload workload{engine, dragonfly, network, permutation, Instant{150'000'000}};
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds();
  engine.run(never);
  const double cpu = cpu_seconds() - cpu_start;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const NetworkTotals totals = network.totals();
  DRYFLY_CHECK(workload.done() == workload.messages() && network.at_rest());
  DRYFLY_CHECK(totals.payload_bytes == workload.messages() * message.count);
  const auto hops = static_cast<double>(totals.packet_hops);
  return {hops / cpu, hops / took.count(), hops / static_cast<double>(totals.packets),
          static_cast<double>(engine.events_run()) / hops};
}

Result median_of(int rounds, bool permutation, const char* name) {
  std::vector<Result> results;
  for (int i = 0; i < rounds; ++i) {
    results.push_back(measure(permutation));
    std::printf("%-12s round %d: %.2f million packet-hops/s (wall %.2f)\n", name, i + 1,
                results.back().hops_per_s / 1e6, results.back().hops_per_wall_s / 1e6);
    std::fflush(stdout);
  }
  std::sort(results.begin(), results.end(),
            [](const Result& a, const Result& b) { return a.hops_per_s < b.hops_per_s; });
  return results[results.size() / 2];
}

}  // namespace
}  // namespace dryfly

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  // Links on a minimal path, injection and ejection included, for uniform targets among the other 1,055 NICs: 3 on
  // the same switch (2 links), 28 in the group (3). Of the 1,024 beyond, the one global link starts at the source's
  // switch for 1 in 8 and ends at the target's for 1 in 8: 3 + 7/8 + 7/8 = 4.75.
  constexpr double minimal_links = (3 * 2.0 + 28 * 3.0 + 1024 * 4.75) / 1055;
  std::printf("1,056 NICs, adaptive routing, acknowledgements on the links, 4 KiB messages at 50 %% load\n");
  double figure = 0;
  for (const bool permutation : {false, true}) {
    const char* name = permutation ? "permutation" : "uniform";
    const dryfly::Result result = dryfly::median_of(rounds, permutation, name);
    std::printf("%-12s median: %.2f million packet-hops/s; %.3f links a packet (minimal %.3f), %.2f events a hop\n",
                name, result.hops_per_s / 1e6, result.mean_links, minimal_links, result.events_per_hop);
    // Detours only ever lengthen a path, by two links at most; uniform traffic at this load takes few.
    if (!permutation && (result.mean_links < minimal_links * 0.995 || result.mean_links > minimal_links * 1.15)) {
      std::printf("the number of links a packet crosses is not that of this dragonfly\n");
      return 1;
    }
    figure = figure == 0 ? result.hops_per_s : std::min(figure, result.hops_per_s);
  }
  std::printf("the anchor csg-htsim: the same number of NICs, without adaptive routing\n");
  std::printf("figure %.0f packet-hops/s; anchor csg-htsim %.0f; ratio %.2f\n", figure, dryfly::anchor_hops_per_s,
              figure / dryfly::anchor_hops_per_s);
  return 0;
}
