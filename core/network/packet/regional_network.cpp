#include "core/network/packet/regional_network.hpp"

#include <algorithm>
#include <barrier>
#include <thread>

#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/fault_plan.hpp"
#include "core/network/packet/region.hpp"

namespace dryfly {

namespace {

// Of 8 ns: a group of 128 NICs has some tens of events in one.
constexpr unsigned slot_width_bits = 13;

}  // namespace

struct RegionalNetwork::Part {
  Part(const Dragonfly& dragonfly, const Spec& spec, const fabric::Region& region)
      : outbox(region.outbox), network(engine, dragonfly, spec, region) {}

  Engine engine{slot_width_bits};
  std::shared_ptr<fabric::Outbox> outbox;
  PacketNetwork network;
  Instant next;  // what it has to do after a window
};

RegionalNetwork::RegionalNetwork(const Dragonfly& dragonfly, const Spec& spec) {
  if (fabric::FaultPlan::any_in(spec)) throw SpecError("fabric.faults: a network in regions takes no faults");
  const fabric::FabricSpec fabric = fabric::FabricSpec::read(spec);
  const Duration smallest_frame = transmission_time(fabric.header, fabric.rate);
  const Duration least_latency{fabric.switch_latency.ps - fabric.latency_spread.ps};
  window_ = fabric.global_flight + std::min(smallest_frame, least_latency);
  if (window_.ps == 0) throw SpecError("fabric.link.global_flight = 0: a network in regions needs a way between them");
  const auto shared = std::make_shared<fabric::SharedState>();
  for (std::uint32_t group = 0; group < dragonfly.group_count(); ++group) {
    const auto outbox = std::make_shared<fabric::Outbox>(dragonfly.group_count());
    parts_.push_back(std::make_unique<Part>(dragonfly, spec, fabric::Region{shared, true, {group}, outbox}));
  }
}

RegionalNetwork::~RegionalNetwork() = default;

Engine& RegionalNetwork::engine(GroupId group) { return parts_[group.value]->engine; }

Carrier& RegionalNetwork::network(GroupId group) { return parts_[group.value]->network; }

// What the others have for this region.
void RegionalNetwork::collect(std::uint32_t group, Instant limit) {
  Part& part = *parts_[group];
  for (const std::unique_ptr<Part>& other : parts_) {
    std::vector<fabric::Crossing>& crossings = (*other->outbox)[group];
    for (const fabric::Crossing& crossing : crossings) {
      DRYFLY_CHECK(crossing.at_ps >= limit.ps);
      part.network.receive(crossing);
    }
    crossings.clear();
  }
  part.next = part.engine.next();
}

void RegionalNetwork::run(std::uint32_t threads) {
  const auto count = static_cast<std::uint32_t>(parts_.size());
  const std::uint32_t workers = std::clamp(threads, 1U, count);
  Instant limit{};
  const auto begin_window = [&]() noexcept {
    Instant next = never;
    for (const std::unique_ptr<Part>& part : parts_) next = std::min(next, part->next);
    limit = next + window_;
  };
  for (const std::unique_ptr<Part>& part : parts_) part->next = part->engine.next();
  begin_window();

  std::barrier all_have_run{static_cast<std::ptrdiff_t>(workers)};
  std::barrier all_have_collected{static_cast<std::ptrdiff_t>(workers), begin_window};
  const auto work = [&](std::uint32_t worker) {
    const std::uint32_t first = count * worker / workers;
    const std::uint32_t end = count * (worker + 1) / workers;
    while (limit != never) {
      for (std::uint32_t group = first; group < end; ++group) parts_[group]->engine.run(limit);
      all_have_run.arrive_and_wait();
      for (std::uint32_t group = first; group < end; ++group) collect(group, limit);
      all_have_collected.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (std::uint32_t worker = 1; worker < workers; ++worker) others.emplace_back(work, worker);
  work(0);
  for (std::thread& other : others) other.join();
}

NetworkTotals RegionalNetwork::totals() const {
  NetworkTotals sum;
  for (const std::unique_ptr<Part>& part : parts_) {
    const NetworkTotals totals = part->network.totals();
    sum.pieces += totals.pieces;
    sum.piece_hops += totals.piece_hops;
    sum.payload_bytes += totals.payload_bytes;
    for (std::size_t index = 0; index < sum.pieces_of.size(); ++index) {
      sum.pieces_of[index] += totals.pieces_of[index];
      sum.bytes_of[index] += totals.bytes_of[index];
    }
  }
  return sum;
}

bool RegionalNetwork::at_rest() const {
  std::uint32_t balance = 0;
  for (const std::unique_ptr<Part>& part : parts_) balance += part->network.balance();
  return balance == 0;
}

std::uint64_t RegionalNetwork::events_run() const {
  std::uint64_t events = 0;
  for (const std::unique_ptr<Part>& part : parts_) events += part->engine.events_run();
  return events;
}

}  // namespace dryfly
