#include "core/motif/collective/gpu_places.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

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
  // From place 0 on, the first where links with more left come before others; empty: none.
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
    std::vector<std::uint32_t> open;
    for (std::uint32_t next = 1; next < places_; ++next) {
      if ((seen >> next & 1U) == 0 && left[next] >= rate) open.push_back(next);
    }
    std::ranges::stable_sort(open, std::greater{}, [&](std::uint32_t next) { return left[next]; });
    for (const std::uint32_t next : open) {
      way.push_back(next);
      if (extend(way, seen | 1U << next, rate)) return true;
      way.pop_back();
    }
    return false;
  }

  std::uint32_t places_;
  std::vector<std::uint64_t> left_;
};

// Ways through a node, each through all of its places, that share links as little as can be.
class Ways {
 public:
  Ways(std::uint32_t places, std::vector<std::uint64_t> rates)
      : places_(places), rates_(std::move(rates)), taken_(rates_.size()) {}

  struct Way {
    std::vector<std::uint32_t> places;  // none: there is no way
    std::uint64_t cost = ~std::uint64_t{0};
  };
  // Of those whose costliest link costs least the first, where cheap links come before others.
  Way find(std::uint32_t first, std::uint32_t last) const {
    std::vector<std::uint64_t> costs;
    for (std::size_t link = 0; link < rates_.size(); ++link) {
      if (rates_[link] > 0) costs.push_back(cost(link));
    }
    std::ranges::sort(costs);
    costs.erase(std::unique(costs.begin(), costs.end()), costs.end());
    for (const std::uint64_t most : costs) {
      Way way{.places = {first}, .cost = most};
      std::uint32_t looks = looks_most;
      if (extend(way, 1U << first | 1U << last, last, looks)) return way;
    }
    return {};
  }
  void take(const std::vector<std::uint32_t>& way) {
    for (std::size_t step = 0; step + 1 < way.size(); ++step) ++taken_[way[step] * places_ + way[step + 1]];
  }

 private:
  static constexpr std::uint32_t looks_most = 10'000;  // a longer search counts as none found

  // What its ways take of a link, with one more.
  std::uint64_t cost(std::size_t link) const {
    return transmission_time(Bytes{(taken_[link] + 1) << 20}, Rate{rates_[link]}).ps;
  }
  bool extend(Way& way, std::uint32_t seen, std::uint32_t last, std::uint32_t& looks) const {
    if (looks == 0) return false;
    --looks;
    const std::size_t links = std::size_t{way.places.back()} * places_;
    const auto is_open = [&](std::uint32_t next) { return rates_[links + next] > 0 && cost(links + next) <= way.cost; };
    if (way.places.size() + 1 == places_) {
      if (!is_open(last)) return false;
      way.places.push_back(last);
      return true;
    }
    std::vector<std::uint32_t> open;
    for (std::uint32_t next = 0; next < places_; ++next) {
      if ((seen >> next & 1U) == 0 && is_open(next)) open.push_back(next);
    }
    std::ranges::stable_sort(open, {}, [&](std::uint32_t next) { return cost(links + next); });
    for (const std::uint32_t next : open) {
      way.places.push_back(next);
      if (extend(way, seen | 1U << next, last, looks)) return true;
      way.places.pop_back();
    }
    return false;
  }

  std::uint32_t places_;
  std::vector<std::uint64_t> rates_;
  std::vector<std::uint64_t> taken_;  // ways of each link
};

constexpr std::uint32_t searched_most = 16;  // places of a node; more have a ring in the order of their numbers
constexpr std::size_t rings_most = 16;

// For the channel of each NIC the NIC by which it comes into a node: its own where another place than the one it leaves
// from is at that, and of NICs with one place each two exchange theirs, so that each NIC has one.
std::vector<std::size_t> nics_in(const std::vector<std::vector<std::uint32_t>>& places_at) {
  std::vector<std::size_t> found(places_at.size()), alone;
  std::iota(found.begin(), found.end(), 0U);
  for (std::size_t nic = 0; nic < found.size(); ++nic) {
    if (places_at[nic].size() == 1) alone.push_back(nic);
  }
  if (alone.size() == 1 && found.size() > 1) alone.push_back(alone[0] == 0 ? 1 : 0);
  for (std::size_t one = 0; one + 1 < alone.size(); one += 2) std::swap(found[alone[one]], found[alone[one + 1]]);
  if (alone.size() > 1 && alone.size() % 2 == 1) std::swap(found[alone.back()], found[alone[0]]);
  return found;
}

}  // namespace

GpuPlaces::GpuPlaces(const Job& job, const Communicator& ranks)
    : per_node_(ranks.on_a_node(job.placement().per_node())), nodes_(ranks.size() / per_node_) {
  const GpuCosts& gpus = job.costs().gpus;
  std::vector<std::uint64_t> any, joined;
  if (gpus.count > 0 && per_node_ > 1 && per_node_ <= searched_most) {
    const std::uint32_t on_node = job.placement().per_node();
    const auto gpu = [&](std::uint32_t place) { return gpus.of(ranks.rank(place) % on_node, on_node); };
    any.resize(std::size_t{per_node_} * per_node_);
    joined.resize(any.size());
    for (std::uint32_t one = 0; one < per_node_; ++one) {
      for (std::uint32_t other = 0; other < per_node_; ++other) {
        const std::size_t pair = std::size_t{one} * per_node_ + other;
        if (one != other) any[pair] = gpus.rate(gpu(one), gpu(other)).bytes_per_s;
        if (gpus.are_joined(gpu(one), gpu(other))) joined[pair] = any[pair];
      }
    }
  }
  find_rings(any, joined);
  if (nodes_ > 1) find_ways(job, ranks, any, joined);
}

void GpuPlaces::find_rings(const std::vector<std::uint64_t>& any, const std::vector<std::uint64_t>& joined) {
  if (!any.empty()) {
    Room room(per_node_, joined);
    std::uint64_t rate = room.widest();
    if (rate == 0) {
      room = Room(per_node_, any);
      rate = room.widest();
    }
    slowest_ = Rate{rate};
    while (rate > 0 && ways_.size() < rings_most) {
      std::vector<std::uint32_t> ring = room.ring(rate);
      if (ring.empty()) break;
      room.take(ring, rate);
      ways_.push_back(std::move(ring));
    }
  }
  if (!ways_.empty()) return;
  ways_.emplace_back(per_node_);
  std::iota(ways_[0].begin(), ways_[0].end(), 0U);
}

void GpuPlaces::find_ways(const Job& job, const Communicator& ranks, const std::vector<std::uint64_t>& any,
                          const std::vector<std::uint64_t>& joined) {
  std::vector<std::uint32_t> nics;
  std::vector<std::vector<std::uint32_t>> places_at;
  for (std::uint32_t place = 0; place < per_node_; ++place) {
    const std::uint32_t nic = job.placement().nic_of(ranks.rank(place)).value;
    const auto found = std::ranges::find(nics, nic);
    if (found == nics.end()) places_at.emplace_back();
    places_at[static_cast<std::size_t>(found - nics.begin())].push_back(place);
    if (found == nics.end()) nics.push_back(nic);
  }
  ways_.clear();
  Ways over_links(per_node_, joined), over_all(per_node_, any);
  const std::vector<std::size_t> in = nics_in(places_at);
  ways_.resize(nics.size());
  for (std::size_t nic = nics.size(); nic-- > 0;) {
    Ways::Way best;
    for (Ways* const ways : {&over_links, &over_all}) {
      for (const std::uint32_t last : places_at[nic]) {
        for (const std::uint32_t first : places_at[in[nic]]) {
          if (first == last || any.empty()) continue;
          const Ways::Way way = ways->find(first, last);
          if (way.cost < best.cost) best = way;
        }
      }
      if (best.places.empty()) continue;
      ways->take(best.places);
      break;
    }
    ways_[nic] = best.places.empty() ? in_order(places_at[in[nic]], places_at[nic][0]) : best.places;
  }
}

// From the last of some to another place, which may be the same where there is no other.
std::vector<std::uint32_t> GpuPlaces::in_order(const std::vector<std::uint32_t>& firsts, std::uint32_t last) const {
  const std::uint32_t first = firsts.back();
  std::vector<std::uint32_t> way;
  if (first != last) way.push_back(first);
  for (std::uint32_t place = 0; place < per_node_; ++place) {
    if (place != first && place != last) way.push_back(place);
  }
  way.push_back(last);
  return way;
}

std::uint32_t GpuPlaces::index(std::uint32_t channel, std::uint32_t local) const {
  return static_cast<std::uint32_t>(std::ranges::find(ways_[channel], local) - ways_[channel].begin());
}

std::uint32_t GpuPlaces::position(std::uint32_t channel, std::uint32_t place) const {
  return place / per_node_ * per_node_ + index(channel, place % per_node_);
}

std::uint32_t GpuPlaces::at(std::uint32_t channel, std::uint32_t position) const {
  return position / per_node_ * per_node_ + local(channel, position % per_node_);
}

}  // namespace dryfly::motif
