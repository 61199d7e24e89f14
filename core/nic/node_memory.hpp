// The memory of each node, as end-points that share it copy there: a core takes its time for each copy and for its
// bytes, and what is too long for the caches moves through the memory, once read and once written, which all cores
// share. How much a core copies, and how soon the other sees it, depends on where the two are (Nearness) and, out of
// the caches, on where the memories are that they are bound to; what goes between sockets shares the link between them,
// each way. Payloads of NICs move through the memory too, and come first: copies have what they leave. A copy that
// begins or ends in a GPU's memory the GPU makes, at the rate of its link. Models
// docs/model/on-node.md#memory-of-a-node and docs/model/on-node.md#places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/contract/memory.hpp"
#include "core/memory/copy_loads.hpp"
#include "core/memory/long_copies.hpp"
#include "core/memory/moved.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/slow_parts.hpp"
#include "core/unit/check.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

// Of an end-point: its core, the memory that its buffers are in, and its NIC.
struct CopyPlace {
  CorePlace core{};
  std::uint32_t socket = 0;  // of that memory
  std::uint32_t domain = MemoryPlace::anywhere;
  std::uint32_t nic_socket = 0;
  std::uint32_t ranks_in_region = 0;

  static CopyPlace of(const MemoryPlace& place) {
    const CorePlace core{.region = place.core_region, .socket = place.core_socket};
    const bool bound = place.domain != MemoryPlace::anywhere;
    return {.core = core,
            .socket = bound ? place.socket : core.socket,
            .domain = place.domain,
            .nic_socket = place.nic_socket,
            .ranks_in_region = place.ranks_in_region};
  }
};

// Of a copy: what it is between.
struct CopyWay {
  CopyEnds ends{};
  CopyPlace copier{};  // whose core copies
  CopyPlace other{};   // what is copied is its own, or goes there
  bool reads = true;   // the first of these
  SourceMemory memory{};

  const CopyPlace& from() const { return reads ? other : copier; }
  // Whose caches have what is copied, where those of one have it.
  const CorePlace& in_caches_of() const { return memory.kept() != Kept::nowhere ? copier.core : from().core; }
  const CopyPlace& to() const { return reads ? copier : other; }
};

class NodeMemory {
 public:
  // A copy that others of its node slow, and what is known of its end: when to look again, or when it is over.
  struct Copying {
    Instant at;
    bool is_over = true;
    std::size_t place = 0;
  };

  explicit NodeMemory(const NodeMemorySpec& spec)
      : spec_(spec),
        parts_{.domains = static_cast<std::uint32_t>(spec.domains.size()),
               .sockets = spec.near.sockets(),
               .regions = spec.near.limited_regions()},
        is_shared_(spec.rate.bytes_per_s != 0),
        is_crossed_(spec.near.is_known() && spec.socket_rate.bytes_per_s != 0) {
    DRYFLY_CHECK(parts_.count() <= Copies::parts_max);
  }

  // A core of the node copies so much from that instant on. Nothing takes no time.
  Copying begin(NodeId node, Instant begin, Bytes size, const CopyWay& way = {}) {
    if (size == Bytes{0}) return {begin};
    if (spec_.gpus.carries(way.ends)) return {begin + spec_.gpus.time(way.ends, size)};
    const Instant started = begin + spec_.copy + by_kernel(size, way.memory);
    const CopyLoads loads = loads_of(size, way);
    const Duration alone = alone_of(node, size, way);
    if (!is_shared_by(size, way)) return {started + alone};
    Node& at = nodes_[node];
    const std::size_t place = Copies::idle(at.copies);
    if (place == at.copies.size()) at.copies.emplace_back();
    const Copies::Progress progress = copies_of(node, at).begin(place, started.ps, alone.ps, loads);
    return {Instant{progress.at_ps}, progress.is_over, place};
  }
  // At the instant that it was said to look again.
  Copying look(NodeId node, Instant now, std::size_t place) {
    const Copies::Progress progress = copies_of(node, nodes_[node]).look(place, now.ps);
    return {Instant{progress.at_ps}, progress.is_over, place};
  }

  // Whether what it takes depends on others.
  bool is_shared_by(Bytes size, const CopyWay& way) const {
    if (spec_.gpus.carries(way.ends)) return false;
    const bool by_regions = parts_.regions != 0;
    if (!stays(size, way.copier)) return is_shared_ || is_crossed_ || by_regions;
    const CorePlace& from = way.in_caches_of();
    const CorePlace& to = way.to().core;
    return (is_crossed_ && from.socket != to.socket) || (by_regions && way.reads && from.region != to.region);
  }
  // A NIC reads a payload of the end-point there from that instant on, or writes it, at the rate of its link and one
  // after the other. What leaves is in caches as what is copied is; what arrives is written to memory.
  void nic_reads(NicId nic, NodeId node, Instant begin, Bytes size, const CopyPlace& place) {
    if (!stays(size, place)) move(read_until_[nic], node, begin, size, place, place.socket, place.nic_socket);
  }
  void nic_writes(NicId nic, NodeId node, Instant begin, Bytes size, const CopyPlace& place) {
    if (size != Bytes{0}) move(written_until_[nic], node, begin, size, place, place.nic_socket, place.socket);
  }
  bool is_limited() const { return spec_.link_rate.bytes_per_s != 0 && (is_shared_ || is_crossed_); }

 private:
  struct Node;
  // As LongCopies uses them.
  struct Parts {
    const NodeMemory* memory;
    NodeId number;
    Node* node;

    std::uint32_t count() const { return memory->parts_.count(); }
    MovedMemory& account(std::uint32_t part) const {
      std::unique_ptr<MovedMemory>& moved = node->moved[part];
      if (!moved) moved = std::make_unique<MovedMemory>();
      return *moved;
    }
    std::uint64_t room(std::uint32_t part) const { return memory->room(number, part); }
  };
  using Copies = LongCopies<Parts>;
  struct Node {
    Copies::Clock clock{};
    std::vector<LongCopy> copies;
    std::map<std::uint32_t, std::unique_ptr<MovedMemory>> moved;
  };

  Copies copies_of(NodeId number, Node& node) const { return {node.clock, node.copies, Parts{this, number, &node}}; }
  void move(Instant& until, NodeId node, Instant begin, Bytes size, const CopyPlace& place, std::uint32_t from,
            std::uint32_t to) {
    const Instant started = std::max(begin, until);
    const Duration alone = transmission_time(size, spec_.link_rate);
    copies_of(node, nodes_[node])
        .take_first(started.ps, alone.ps, CopyLoads::by_nic(parts_, place.domain, from, to, size.count));
    until = started + alone;
  }
  static CopyEnd end_of(const CopyPlace& place) { return {.memory_socket = place.socket, .domain = place.domain}; }
  static CopyCore core_of(const CorePlace& place) { return {.region = place.region, .socket = place.socket}; }
  CopyLoads loads_of(Bytes size, const CopyWay& way) const {
    if (stays(size, way.copier)) {
      const CopyCore from = core_of(way.in_caches_of());
      CopyCore to = core_of(way.to().core);
      if (!way.reads) to.region = from.region;  // what a core writes stays in its caches until the other reads it
      return CopyLoads::in_caches(parts_, from, to, size.count);
    }
    return CopyLoads::through_memory(parts_, core_of(way.copier.core), end_of(way.from()), end_of(way.to()),
                                     size.count);
  }
  // In caches, of what the core there copies.
  bool stays(Bytes size, const CopyPlace& place) const {
    return size <= (place.ranks_in_region != 0 ? spec_.near.cached_of(place.ranks_in_region) : spec_.cached);
  }
  Duration alone_of(NodeId node, Bytes size, const CopyWay& way) const {
    if (stays(size, way.copier)) {
      const bool in_own = way.memory.kept() == Kept::in_own && spec_.near.is_known();
      const std::size_t distance = spec_.near.distance(way.in_caches_of(), way.to().core);
      return transmission_time(size, in_own ? spec_.near.own_rate() : rate_of(true, distance));
    }
    const std::uint32_t here = way.copier.core.socket;
    const bool far = spec_.near.is_known() && (way.from().socket != here || way.to().socket != here);
    const Rate rate = rate_of(false, far ? Nearness::across_sockets : 0);
    return transmission_time(size, SlowParts::of(rate, SlowParts::share_of(spec_.slow, node)));
  }
  std::uint64_t room(NodeId node, std::uint32_t part) const {
    if (part >= parts_.out_of(0)) return MovedMemory::room(spec_.near.out_of_region().bytes_per_s);
    if (part >= parts_.into(0)) return MovedMemory::room(spec_.near.into_region().bytes_per_s);
    if (part >= parts_.link(0, 0)) return is_crossed_ ? MovedMemory::room(spec_.socket_rate.bytes_per_s) : 0;
    const Rate rate = part == SharedParts::memory ? spec_.rate
                      : is_shared_                ? spec_.domains[part - parts_.domain(0)]
                                                  : Rate{};
    return MovedMemory::room(SlowParts::of(rate, SlowParts::share_of(spec_.slow, node)).bytes_per_s);
  }
  Rate rate_of(bool stays, std::size_t distance) const {
    if (!spec_.near.is_known()) return spec_.copy_rate;
    return stays ? spec_.near.way(distance).cached : spec_.near.way(distance).memory;
  }
  // What does not fit into a segment is copied out of another process's memory.
  Duration by_kernel(Bytes size, SourceMemory memory) const {
    return size <= spec_.segment_max ? Duration{} : memory.attaching().value_or(spec_.cross_copy);
  }

  const NodeMemorySpec& spec_;
  SharedParts parts_;
  bool is_shared_;   // the memory carries only so much
  bool is_crossed_;  // and so do the links between sockets
  std::map<NicId, Instant> read_until_;
  std::map<NicId, Instant> written_until_;
  std::map<NodeId, Node> nodes_;
};

}  // namespace dryfly::nic
