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
#include <tuple>
#include <utility>

#include "core/contract/memory.hpp"
#include "core/memory/moved.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/slow_parts.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

// Of an end-point: its core, the memory that its buffers are in, and its NIC.
struct CopyPlace {
  CorePlace core{};
  std::uint32_t socket = 0;  // of that memory
  std::uint32_t domain = MemoryPlace::anywhere;
  std::uint32_t nic_socket = 0;

  static CopyPlace of(const MemoryPlace& place) {
    const CorePlace core{.region = place.core_region, .socket = place.core_socket};
    const bool bound = place.domain != MemoryPlace::anywhere;
    return {.core = core,
            .socket = bound ? place.socket : core.socket,
            .domain = place.domain,
            .nic_socket = place.nic_socket};
  }
};

// Of a copy: what it is between.
struct CopyWay {
  CopyEnds ends{};
  CopyPlace copier{};  // whose core copies
  CopyPlace other{};   // what is copied is its own, or goes there
  bool reads = true;   // the first of these
  Attaching attaching{};

  const CopyPlace& from() const { return reads ? other : copier; }
  const CopyPlace& to() const { return reads ? copier : other; }
};

class NodeMemory {
 public:
  explicit NodeMemory(const NodeMemorySpec& spec)
      : spec_(spec),
        room_(MovedMemory::room(spec.rate.bytes_per_s)),
        crossing_room_(spec.near.is_known() ? MovedMemory::room(spec.socket_rate.bytes_per_s) : 0) {}

  // When a core of the node that begins then has copied so much. Nothing takes no time.
  Instant copied(NodeId node, Instant begin, Bytes size, const CopyWay& way = {}) {
    if (size == Bytes{0}) return begin;
    if (spec_.gpus.carries(way.ends)) return begin + spec_.gpus.time(way.ends, size);
    const Instant started = begin + spec_.copy + by_kernel(size, way.attaching);
    return size <= spec_.cached ? copied_in_caches(node, started, size, way)
                                : copied_through_memory(node, started, size, way);
  }

  // Whether what it takes depends on others.
  bool is_shared_by(Bytes size, const CopyWay& way) const {
    if (spec_.gpus.carries(way.ends)) return false;
    if (size > spec_.cached) return room_ != 0 || crossing_room_ != 0;
    return crossing_room_ != 0 && way.copier.core.socket != way.other.core.socket;
  }
  // A NIC reads a payload of the end-point there from that instant on, or writes it, at the rate of its link and one
  // after the other. What leaves is in caches as what is copied is; what arrives is written to memory.
  void nic_reads(NicId nic, NodeId node, Instant begin, Bytes size, const CopyPlace& place) {
    if (size > spec_.cached) move(read_until_[nic], node, begin, size, place, place.socket, place.nic_socket);
  }
  void nic_writes(NicId nic, NodeId node, Instant begin, Bytes size, const CopyPlace& place) {
    if (size != Bytes{0}) move(written_until_[nic], node, begin, size, place, place.nic_socket, place.socket);
  }
  bool is_limited() const { return spec_.link_rate.bytes_per_s != 0 && (room_ != 0 || crossing_room_ != 0); }

 private:
  static MovedMemory& account(std::unique_ptr<MovedMemory>& moved) {
    if (!moved) moved = std::make_unique<MovedMemory>();
    return *moved;
  }
  void move(Instant& until, NodeId node, Instant begin, Bytes size, const CopyPlace& place, std::uint32_t from,
            std::uint32_t to) {
    const Instant started = std::max(begin, until);
    const Duration alone = transmission_time(size, spec_.link_rate);
    if (room_ != 0) {
      account(moved_[node]).end_of(started.ps, alone.ps, size.count, room_at(node));
      through_domain(node, place.domain, started, alone, size);
    }
    across(node, from, to, started, alone, size);
    until = started + alone;
  }
  Instant copied_in_caches(NodeId node, Instant started, Bytes size, const CopyWay& way) {
    const std::size_t distance = spec_.near.distance(way.from().core, way.to().core);
    const Duration alone = transmission_time(size, rate_of(true, distance));
    const Instant crossed = across(node, way.from().core.socket, way.to().core.socket, started, alone, size);
    return std::max(started + alone, crossed);
  }
  Instant copied_through_memory(NodeId node, Instant started, Bytes size, const CopyWay& way) {
    const std::uint32_t here = way.copier.core.socket;
    const bool far = spec_.near.is_known() && (way.from().socket != here || way.to().socket != here);
    const Rate rate = rate_of(false, far ? Nearness::across_sockets : 0);
    const Duration alone = transmission_time(size, SlowParts::of(rate, SlowParts::share_of(spec_.slow, node)));
    Instant end = started + alone;
    if (room_ != 0) {
      end = Instant{account(moved_[node]).end_of(started.ps, alone.ps, 2 * size.count, room_at(node))};
      end = std::max(end, through_domain(node, way.from().domain, started, alone, size));
      end = std::max(end, through_domain(node, way.to().domain, started, alone, size));
    }
    end = std::max(end, across(node, way.from().socket, here, started, alone, size));
    return std::max(end, across(node, here, way.to().socket, started, alone, size));
  }
  // By the memory that a rank is bound to; one that is not bound has its share of all.
  Instant through_domain(NodeId node, std::uint32_t domain, Instant begin, Duration alone, Bytes size) {
    const Rate rate = domain < spec_.domains.size() ? spec_.domains[domain] : Rate{};
    if (rate.bytes_per_s == 0) return begin;
    const std::uint64_t room =
        MovedMemory::room(SlowParts::of(rate, SlowParts::share_of(spec_.slow, node)).bytes_per_s);
    return Instant{account(of_domain_[{node, domain}]).end_of(begin.ps, alone.ps, size.count, room)};
  }
  Instant across(NodeId node, std::uint32_t from, std::uint32_t to, Instant begin, Duration alone, Bytes size) {
    if (from == to || crossing_room_ == 0) return begin;
    return Instant{account(crossed_[{node, from, to}]).end_of(begin.ps, alone.ps, size.count, crossing_room_)};
  }
  std::uint64_t room_at(NodeId node) const {
    const std::uint64_t share = SlowParts::share_of(spec_.slow, node);
    return share == SlowParts::whole_ppb ? room_ : MovedMemory::room(SlowParts::of(spec_.rate, share).bytes_per_s);
  }
  Rate rate_of(bool stays, std::size_t distance) const {
    if (!spec_.near.is_known()) return spec_.copy_rate;
    return stays ? spec_.near.way(distance).cached : spec_.near.way(distance).memory;
  }
  // What does not fit into a segment is copied out of another process's memory.
  Duration by_kernel(Bytes size, Attaching attaching) const {
    return size <= spec_.segment_max ? Duration{} : attaching.time().value_or(spec_.cross_copy);
  }

  const NodeMemorySpec& spec_;
  std::uint64_t room_;  // bytes of an interval
  std::uint64_t crossing_room_;
  std::map<NicId, Instant> read_until_;
  std::map<NicId, Instant> written_until_;
  std::map<NodeId, std::unique_ptr<MovedMemory>> moved_;
  std::map<std::pair<NodeId, std::uint32_t>, std::unique_ptr<MovedMemory>> of_domain_;
  std::map<std::tuple<NodeId, std::uint32_t, std::uint32_t>, std::unique_ptr<MovedMemory>> crossed_;  // from, to
};

}  // namespace dryfly::nic
