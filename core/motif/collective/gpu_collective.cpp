#include "core/motif/collective/gpu_collective.hpp"

#include <algorithm>
#include <bit>

namespace dryfly::motif {
namespace {

// What RCCL's model of itself takes for its protocol Simple, in us: on a node and between nodes.
constexpr double start_us = 17.0, ring_step_us = 3.6, ring_hop_us = 15.1, tree_step_us = 2.5, tree_hop_us = 20.8;
constexpr double tree_share_on_two = 0.91, tree_share = 0.95;  // of the rate that a ring has

Channels channels_of(const GpuShare& share, GpuAlgorithm algorithm, Rate nic) {
  const bool everywhere = share.what == Collective::allreduce;
  if (algorithm == GpuAlgorithm::tuned) {
    const bool by_tree = everywhere && tree_is_tuned(share.places, nic, share.size);
    algorithm = by_tree ? GpuAlgorithm::tree : GpuAlgorithm::ring;
  }
  if (algorithm == GpuAlgorithm::tree) return gpu_tree(share);
  if (algorithm == GpuAlgorithm::topo && everywhere) return gpu_topo(share);
  return gpu_ring(share);
}

}  // namespace

bool tree_is_tuned(const GpuPlaces& places, Rate nic, Bytes size) {
  if (nic.bytes_per_s == 0 || places.size() < 2) return false;
  const double ranks = places.size(), nodes = places.nodes(), bytes = static_cast<double>(size.count);
  double rate =
      places.nodes() == 1 ? static_cast<double>(places.slowest().bytes_per_s) : static_cast<double>(nic.bytes_per_s);
  if (places.slowest().bytes_per_s > 0) rate = std::min(rate, static_cast<double>(places.slowest().bytes_per_s));
  const double bytes_per_us = rate * places.channels() * 1e-6;
  const double hops = 2 * (nodes - 1), steps = 2 * (ranks - 1) - hops;
  const double ring =
      start_us + steps * ring_step_us + hops * ring_hop_us + bytes * 2 * (ranks - 1) / ranks / bytes_per_us;
  const double levels = std::bit_width(places.nodes()) - 1;
  const double share = places.nodes() <= 2 ? tree_share_on_two : tree_share;
  const double tree =
      start_us + 2 * ((ranks / nodes - 1) * tree_step_us + levels * tree_hop_us) + bytes * 2 / (share * bytes_per_us);
  return tree < ring;
}

GpuCollective::GpuCollective(Rank& me, const Communicator& ranks, const CollectiveCall& call, GpuAlgorithm algorithm,
                             std::uint32_t number) {
  if (ranks.size() < 2) return;
  const GpuPlaces places(me.job(), ranks);
  channels_ = channels_of({.places = places,
                           .ranks = ranks,
                           .place = ranks.place_of(me),
                           .what = call.what,
                           .size = call.size,
                           .element = call.element,
                           .number = number},
                          algorithm, me.job().costs().gpus.nic);
  schedules_.resize(channels_.size());
}

void GpuCollective::start(flight::Traffic& traffic) {
  for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
    schedules_[channel].set(channels_[channel].get(), 0);
    traffic.start(schedules_[channel]);
  }
}

Task GpuCollective::wait(Rank& me, flight::Traffic& traffic) {
  for (flight::Schedule& schedule : schedules_) co_await traffic.wait(me, schedule);
}

std::uint64_t GpuCollective::bytes() const {
  std::uint64_t sum = 0;
  flight::Transfers transfers;
  for (const std::unique_ptr<flight::Rounds>& rounds : channels_) {
    for (std::uint32_t number = 0; rounds->round(number, transfers); ++number) {
      for (const flight::Transfer& each : transfers) sum += each.is_send ? each.bytes : 0;
      transfers.clear();
    }
    transfers.clear();
  }
  return sum;
}

Task run_on_gpus(Rank& me, Communicator ranks, CollectiveCall call, GpuAlgorithm algorithm) {
  GpuCollective collective(me, ranks, call, algorithm);
  flight::Traffic traffic(me);
  co_await me.compute(me.job().costs().gpus.launch);
  collective.start(traffic);
  co_await collective.wait(me, traffic);
  co_await me.wait_all();
}

}  // namespace dryfly::motif
