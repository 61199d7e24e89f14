// The memory of each node, as end-points that share it copy there: a core takes its time for each copy and for its
// bytes, and what is too long for the caches moves through the memory, once read and once written, which all cores
// share. How much a core copies, and how soon the other sees it, depends on where the two are (Nearness); what goes
// between sockets shares the link between them, each way. A copy that begins or ends in a GPU's memory the GPU makes,
// at the rate of its link. Models docs/model/on-node.md#memory-of-a-node and docs/model/on-node.md#places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "core/memory/moved.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/slow_parts.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

// Of a copy: what it is between.
struct CopyWay {
  CopyEnds ends{};
  std::size_t distance = 0;       // between the core that copies and the one that has what is copied, or will have it
  std::uint32_t from_socket = 0;  // where the bytes come from
  Attaching attaching{};
};

class NodeMemory {
 public:
  explicit NodeMemory(const NodeMemorySpec& spec)
      : spec_(spec),
        room_(MovedMemory::room(spec.rate.bytes_per_s)),
        crossing_room_(MovedMemory::room(spec.socket_rate.bytes_per_s)) {}

  // When a core of the node that begins then has copied so much. Nothing takes no time.
  Instant copied(NodeId node, Instant begin, Bytes size, const CopyWay& way = {}) {
    if (size == Bytes{0}) return begin;
    if (spec_.gpus.carries(way.ends)) return begin + spec_.gpus.time(way.ends, size);
    const bool stays = size <= spec_.cached;
    const bool crosses = way.distance == Nearness::across_sockets && crossing_room_ != 0;
    const Instant started = begin + spec_.copy + by_kernel(size, way.attaching);
    if (stays && !crosses) return started + transmission_time(size, rate_of(true, way.distance));
    const std::uint64_t share = stays ? SlowParts::whole_ppb : SlowParts::share_of(spec_.slow, node);
    const Duration alone = transmission_time(size, SlowParts::of(rate_of(stays, way.distance), share));
    Instant end = started + alone;
    if (!stays && room_ != 0) {
      const std::uint64_t room =
          share == SlowParts::whole_ppb ? room_ : MovedMemory::room(SlowParts::of(spec_.rate, share).bytes_per_s);
      end = Instant{account(moved_[node]).end_of(started.ps, alone.ps, 2 * size.count, room)};
    }
    if (crosses) {
      MovedMemory& crossed = account(crossed_[{node, way.from_socket}]);
      end = std::max(end, Instant{crossed.end_of(started.ps, alone.ps, size.count, crossing_room_)});
    }
    return end;
  }

 private:
  static MovedMemory& account(std::unique_ptr<MovedMemory>& moved) {
    if (!moved) moved = std::make_unique<MovedMemory>();
    return *moved;
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
  std::map<NodeId, std::unique_ptr<MovedMemory>> moved_;
  std::map<std::pair<NodeId, std::uint32_t>, std::unique_ptr<MovedMemory>> crossed_;  // by where it comes from
};

}  // namespace dryfly::nic
