#include "core/motif/collective/gpu_places.hpp"

#include <algorithm>
#include <numeric>

namespace dryfly::motif {
namespace {

// What links between the places of a node have left, each way.
class Room {
 public:
  Room(std::uint32_t places, std::vector<std::uint64_t> rates) : places_(places), left_(std::move(rates)) {}

  // The greatest rate that all links of some ring have; 0: there is no ring.
  std::uint64_t widest() const {
    std::vector<std::uint64_t> rates = left_;
    std::ranges::sort(rates, std::greater{});
    rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
    for (const std::uint64_t rate : rates) {
      if (rate > 0 && !ring(rate).empty()) return rate;
    }
    return 0;
  }
  // From place 0 on, the first in the order of numbers; empty: none.
  std::vector<std::uint32_t> ring(std::uint64_t rate) const {
    std::vector<std::uint32_t> way{0};
    return extend(way, 1, rate) ? way : std::vector<std::uint32_t>{};
  }
  void take(const std::vector<std::uint32_t>& ring, std::uint64_t rate) {
    for (std::uint32_t step = 0; step < places_; ++step)
      left_[ring[step] * places_ + ring[(step + 1) % places_]] -= rate;
  }

 private:
  bool extend(std::vector<std::uint32_t>& way, std::uint32_t seen, std::uint64_t rate) const {
    const std::uint64_t* const left = &left_[way.back() * places_];
    if (way.size() == places_) return left[0] >= rate;
    for (std::uint32_t next = 1; next < places_; ++next) {
      if ((seen >> next & 1U) != 0 || left[next] < rate) continue;
      way.push_back(next);
      if (extend(way, seen | 1U << next, rate)) return true;
      way.pop_back();
    }
    return false;
  }

  std::uint32_t places_;
  std::vector<std::uint64_t> left_;
};

constexpr std::uint32_t searched_most = 16;  // places of a node; more have a ring in the order of their numbers
constexpr std::size_t rings_most = 16;

}  // namespace

GpuPlaces::GpuPlaces(const Job& job, const Communicator& ranks)
    : per_node_(ranks.on_a_node(job.placement().per_node())), nodes_(ranks.size() / per_node_) {
  find_rings(job, ranks);
  find_channels(job, ranks);
}

void GpuPlaces::find_rings(const Job& job, const Communicator& ranks) {
  const GpuCosts& gpus = job.costs().gpus;
  if (gpus.count > 0 && per_node_ > 1 && per_node_ <= searched_most) {
    const std::uint32_t on_node = job.placement().per_node();
    const auto gpu = [&](std::uint32_t place) { return gpus.of(ranks.rank(place) % on_node, on_node); };
    std::vector<std::uint64_t> joined(std::size_t{per_node_} * per_node_);
    std::vector<std::uint64_t> any(joined.size());
    for (std::uint32_t one = 0; one < per_node_; ++one) {
      for (std::uint32_t other = 0; other < per_node_; ++other) {
        const std::size_t pair = std::size_t{one} * per_node_ + other;
        if (one != other) any[pair] = gpus.rate(gpu(one), gpu(other)).bytes_per_s;
        if (gpus.joined[gpu(one) * gpus.count + gpu(other)]) joined[pair] = any[pair];
      }
    }
    Room room(per_node_, joined);
    std::uint64_t rate = room.widest();
    if (rate == 0) {
      room = Room(per_node_, any);
      rate = room.widest();
    }
    slowest_ = Rate{rate};
    while (rate > 0 && rings_.size() < rings_most) {
      std::vector<std::uint32_t> ring = room.ring(rate);
      if (ring.empty()) break;
      room.take(ring, rate);
      rings_.push_back(std::move(ring));
    }
  }
  if (!rings_.empty()) return;
  rings_.emplace_back(per_node_);
  std::iota(rings_[0].begin(), rings_[0].end(), 0U);
}

void GpuPlaces::find_channels(const Job& job, const Communicator& ranks) {
  std::vector<std::uint32_t> first_at;  // of each NIC
  if (nodes_ == 1) {
    channels_ = static_cast<std::uint32_t>(rings_.size());
    first_at.assign(channels_, 0);
  } else {
    std::vector<std::uint32_t> nics;
    for (std::uint32_t place = 0; place < per_node_; ++place) {
      const std::uint32_t nic = job.placement().nic_of(ranks.rank(place)).value;
      if (std::ranges::find(nics, nic) != nics.end()) continue;
      nics.push_back(nic);
      first_at.push_back(place);
    }
    channels_ = static_cast<std::uint32_t>(first_at.size());
  }
  for (std::uint32_t channel = 0; channel < channels_; ++channel) {
    const std::vector<std::uint32_t>& ring = rings_[channel % rings_.size()];
    leaves_.push_back(static_cast<std::uint32_t>(std::ranges::find(ring, first_at[channel]) - ring.begin()));
  }
}

std::uint32_t GpuPlaces::local(std::uint32_t channel, std::uint32_t index) const {
  return rings_[channel % rings_.size()][(leaves_[channel] + index) % per_node_];
}

std::uint32_t GpuPlaces::index(std::uint32_t channel, std::uint32_t local) const {
  const std::vector<std::uint32_t>& ring = rings_[channel % rings_.size()];
  const auto found = static_cast<std::uint32_t>(std::ranges::find(ring, local) - ring.begin());
  return (found + per_node_ - leaves_[channel]) % per_node_;
}

// The one at the NIC is the last of its node, and its index 0.
std::uint32_t GpuPlaces::position(std::uint32_t channel, std::uint32_t place) const {
  const std::uint32_t index = this->index(channel, place % per_node_);
  return place / per_node_ * per_node_ + (index + per_node_ - 1) % per_node_;
}

std::uint32_t GpuPlaces::at(std::uint32_t channel, std::uint32_t position) const {
  return position / per_node_ * per_node_ + local(channel, (position + 1) % per_node_);
}

}  // namespace dryfly::motif
