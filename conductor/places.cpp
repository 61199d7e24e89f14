#include "conductor/places.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "core/nic/nic_spec.hpp"
#include "core/nic/node_memory.hpp"
#include "core/spec/fields.hpp"

namespace dryfly {

namespace {

constexpr std::uint64_t whole_ppb = 1'000'000'000;

bool has(const std::uint64_t* words, std::uint32_t bit) { return (words[bit / 64] >> bit % 64 & 1) != 0; }

}  // namespace

Places::Places(const Spec& spec, std::vector<Rank>& ranks, LimitCrossing limit_crossing)
    : ranks_(ranks),
      near_(Nearness::read(spec)),
      limit_crossing_(std::move(limit_crossing)),
      cores_(spec.small(fields::node_cores)),
      processors_(std::min(cores_ * spec.small(fields::node_threads), wire::processors_max)),
      nic_sockets_(nic_sockets(spec)),
      nic_gpus_(nic_gpus(spec)),
      computes_(spec.text(fields::host_compute_mode) == "model") {
  if (spec.has(fields::node_socket_rate_bytes_per_s)) {
    socket_rate_ = Rate{spec.number(fields::node_socket_rate_bytes_per_s)};
  }
  std::uint32_t first = 0;
  const std::uint64_t count = spec.number(fields::node_domains);
  for (std::uint64_t number = 0; number < count; ++number) {
    Domain domain;
    domain.socket = spec.small(fields::node_domain_socket, {number});
    domain.cores = spec.small(fields::node_domain_cores, {number});
    domain.first_core = first;
    if (spec.has(fields::node_domain_rate_bytes_per_s, {number})) {
      domain.bytes_per_s = spec.number(fields::node_domain_rate_bytes_per_s, {number});
    }
    first += domain.cores;
    domains_.push_back(domain);
  }
}

bool Places::has_processors(const Rank& rank) {
  return std::ranges::any_of(rank.seat.place.processors, [](std::uint64_t word) { return word != 0; });
}

void Places::take(Rank& rank, const wire::NodePlace& place) {
  rank.seat.place = place;
  // What a damaged page may say of others is left out.
  for (std::uint32_t processor = processors_; processor < wire::processors_max; ++processor) {
    rank.seat.place.processors[processor / 64] &= ~(std::uint64_t{1} << processor % 64);
  }
  if (domains_.size() < 64) rank.seat.place.memories &= (std::uint64_t{1} << domains_.size()) - 1;
  const std::vector<std::uint32_t> cores = cores_of(rank);
  rank.seat.core = cores.empty() ? 0 : cores.front();
}

std::vector<std::uint32_t> Places::cores_of(const Rank& rank) const {
  std::vector<std::uint32_t> found;
  if (!has_processors(rank)) return found;
  for (std::uint32_t processor = 0; processor < processors_; ++processor) {
    if (has(rank.seat.place.processors, processor)) found.push_back(processor % cores_);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::uint32_t Places::domain_of(std::uint32_t core) const {
  for (std::uint32_t number = 0; number < domains_.size(); ++number) {
    if (core - domains_[number].first_core < domains_[number].cores) return number;
  }
  return 0;
}

std::uint32_t Places::socket_of(const Rank& rank) const {
  return has_processors(rank) ? domains_[domain_of(rank.seat.core)].socket : rank.socket;
}

std::uint32_t Places::memory_of(const Rank& rank) const {
  const std::uint32_t socket = socket_of(rank);
  std::uint32_t beside = has_processors(rank) ? domain_of(rank.seat.core) : 0;
  while (!has_processors(rank) && beside + 1 < domains_.size() && domains_[beside].socket != socket) ++beside;
  const std::uint64_t memories = rank.seat.place.memories;
  if (memories == 0 || has(&memories, beside)) return beside;
  std::uint32_t nearest = 0;
  bool is_near = false;
  for (std::uint32_t number = static_cast<std::uint32_t>(domains_.size()); number-- > 0;) {
    if (!has(&memories, number)) continue;
    const bool near = domains_[number].socket == socket;
    if (near || !is_near) nearest = number;
    is_near |= near;
  }
  return nearest;
}

MemoryPlace Places::memory_place(const Rank& rank, std::uint32_t nic) const {
  const CorePlace core = core_place(rank);
  MemoryPlace place{.socket = rank.socket,
                    .nic_socket = nic_socket(nic),
                    .nic_gpu = nic_gpu(nic),
                    .core_region = core.region,
                    .core_socket = core.socket,
                    .ranks_in_region = rank.seat.ranks_in_region};
  if (!is_bound(rank)) return place;
  place.domain = memory_of(rank);
  place.socket = domains_[place.domain].socket;
  place.processor_socket = socket_of(rank);
  return place;
}

bool Places::nics_cross(const Rank& rank) const {
  if (!is_bound(rank)) return false;
  const std::uint32_t socket = domains_[memory_of(rank)].socket;
  for (std::uint64_t left = rank.seat.nics; left != 0; left &= left - 1) {
    if (nic_socket(static_cast<std::uint32_t>(std::countr_zero(left))) != socket) return true;
  }
  return false;
}

bool Places::reads_across(const Rank& rank) const {
  return is_bound(rank) && domains_[memory_of(rank)].socket != socket_of(rank);
}

void Places::settle_all(std::uint64_t from_ps) {
  std::map<NodeId, std::vector<Rank*>> nodes;
  for (Rank& rank : ranks_) nodes[rank.node].push_back(&rank);
  for (const auto& [node, ranks] : nodes) {
    if (std::ranges::any_of(ranks, [](const Rank* rank) { return is_bound(*rank); })) {
      settle(node, ranks, from_ps);
    } else if (near_.is_known()) {
      for (Rank* rank : ranks) give_copies(*rank, ranks, rank->page->share);
    }
  }
}

void Places::see_last() {
  std::map<NodeId, std::vector<Rank*>> nodes;
  for (Rank& rank : ranks_) {
    take(rank, rank.page->place);
    nodes[rank.node].push_back(&rank);
  }
  for (const auto& [node, ranks] : nodes) seat(ranks);
}

void Places::settle(NodeId node, std::uint64_t from_ps) {
  std::vector<Rank*> ranks;
  for (Rank& rank : ranks_) {
    if (rank.node == node) ranks.push_back(&rank);
  }
  settle(node, ranks, from_ps);
}

void Places::settle(NodeId node, const std::vector<Rank*>& ranks, std::uint64_t from_ps) {
  seat(ranks);
  give_shares(node, ranks, from_ps);
}

void Places::give_copies(const Rank& rank, const std::vector<Rank*>& ranks, wire::NodeShare& share) const {
  if (!near_.is_known()) return;
  std::uint64_t others = 0;
  std::uint64_t cached_ps = 0;
  std::uint64_t memory_ps = 0;
  std::uint64_t across = 0;
  for (const Rank* other : ranks) {
    if (other == &rank && ranks.size() > 1) continue;
    const Nearness::Way& way = near_.way(core_place(rank), core_place(*other));
    ++others;
    if (near_.distance(core_place(rank), core_place(*other)) == Nearness::across_sockets) ++across;
    cached_ps += wire::picoseconds_per_kib(way.cached.bytes_per_s);
    memory_ps += wire::picoseconds_per_kib(way.memory.bytes_per_s);
  }
  share.cached_ps_per_kib = cached_ps / others;
  share.copied_ps_per_kib = memory_ps / others;
  share.across_ppb = across * whole_ppb / others;
  const nic::CopyPlace at = nic::CopyPlace::of(memory_place(rank, 0));
  if (at.ranks_in_region != 0) share.cached = near_.cached_of(at.ranks_in_region).count;
  share.copies_at = {.region = static_cast<std::uint16_t>(at.core.region + 1),
                     .socket = static_cast<std::uint8_t>(at.core.socket),
                     .memory_socket = static_cast<std::uint8_t>(at.socket),
                     .domain = at.domain == MemoryPlace::anywhere ? 0 : at.domain + 1};
}

void Places::seat(const std::vector<Rank*>& ranks) {
  std::vector<std::pair<std::vector<std::uint32_t>, Rank*>> bound;
  for (Rank* rank : ranks) {
    if (has_processors(*rank)) bound.emplace_back(cores_of(*rank), rank);
  }
  std::ranges::stable_sort(bound, {}, [](const auto& each) { return each.first.size(); });
  std::vector<std::uint32_t> taken(cores_);
  for (const auto& [cores, rank] : bound) {
    rank->seat.core = *std::ranges::min_element(cores, {}, [&](std::uint32_t core) { return taken[core]; });
    ++taken[rank->seat.core];
  }
  for (Rank* rank : ranks) rank->seat.share = {.counts = 1, .ranks_on_node = static_cast<std::uint32_t>(ranks.size())};
  for (Rank* rank : ranks) rank->seat.ranks_in_region = 0;
  if (near_.is_known() && !bound.empty()) {
    std::map<std::uint32_t, std::uint32_t> in_region;
    for (const Rank* rank : ranks) ++in_region[core_place(*rank).region];
    for (Rank* rank : ranks) rank->seat.ranks_in_region = in_region[core_place(*rank).region];
  }
  for (const auto& [cores, rank] : bound) rank->seat.share.others_on_core = taken[rank->seat.core] - 1;
}

void Places::give_shares(NodeId node, const std::vector<Rank*>& ranks, std::uint64_t from_ps) {
  std::vector<std::uint64_t> wanting(cores_);             // ranks that may use the core
  std::vector<std::uint64_t> using_ppb(domains_.size());  // ranks at a time that use its memory
  std::uint64_t across = 0;
  for (const Rank* rank : ranks) {
    for (const std::uint32_t core : cores_of(*rank)) ++wanting[core];
    using_ppb[memory_of(*rank)] += whole_ppb / (1 + rank->seat.share.others_on_core);
    if (reads_across(*rank)) ++across;
  }
  const bool any_cross = std::ranges::any_of(ranks, [this](const Rank* rank) { return nics_cross(*rank); });
  const Rate left{any_cross ? socket_rate_.bytes_per_s / 2 : socket_rate_.bytes_per_s};
  if (computes_ && socket_rate_.bytes_per_s != 0) limit_crossing_(node, across > 0 ? left : socket_rate_);
  for (Rank* rank : ranks) {
    wire::NodeShare& share = rank->seat.share;
    const std::vector<std::uint32_t> cores = cores_of(*rank);
    for (const std::uint32_t core : cores) share.operations_ppb += whole_ppb / wanting[core];
    // While it has its core, all of that is its own.
    share.operations_ppb = std::min(share.operations_ppb * (1 + share.others_on_core), cores.size() * whole_ppb);
    share.operations_ppb = cores.empty() ? whole_ppb / ranks.size() : share.operations_ppb / cores_;
    const std::uint32_t memory = memory_of(*rank);
    using Wide = unsigned __int128;
    share.memory_bytes_per_s =
        static_cast<std::uint64_t>(Wide{domains_[memory].bytes_per_s} * whole_ppb / using_ppb[memory]);
    if (reads_across(*rank) && socket_rate_.bytes_per_s != 0) {
      share.memory_bytes_per_s = std::min(share.memory_bytes_per_s, left.bytes_per_s / across);
    }
    give_copies(*rank, ranks, share);
    rank->seat.coming.emplace_back(from_ps, share);
  }
}

}  // namespace dryfly
