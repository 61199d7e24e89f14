// The memory of each node, as end-points that share it copy there: a core takes its time for each copy and for its
// bytes, and what is too long for the caches moves through the memory, once read and once written, which all cores
// share. A copy that begins or ends in a GPU's memory the GPU makes, at the rate of its link. Models
// docs/model/on-node.md#memory-of-a-node.
#pragma once

#include <map>
#include <memory>

#include "core/memory/moved.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/slow_parts.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

class NodeMemory {
 public:
  explicit NodeMemory(const NodeMemorySpec& spec) : spec_(spec), room_(MovedMemory::room(spec.rate.bytes_per_s)) {}

  // When a core of the node that begins then has copied so much. Nothing takes no time.
  Instant copied(NodeId node, Instant begin, Bytes size, CopyEnds ends = {}) {
    if (size == Bytes{0}) return begin;
    if (spec_.gpus.carries(ends)) return begin + spec_.gpus.time(ends, size);
    const Instant started = begin + spec_.copy;
    const std::uint64_t share = SlowParts::share_of(spec_.slow, node);
    if (size <= spec_.cached) return started + transmission_time(size, spec_.copy_rate);
    const Duration alone = transmission_time(size, SlowParts::of(spec_.copy_rate, share));
    if (room_ == 0) return started + alone;
    const std::uint64_t room =
        share == SlowParts::whole_ppb ? room_ : MovedMemory::room(SlowParts::of(spec_.rate, share).bytes_per_s);
    std::unique_ptr<MovedMemory>& moved = moved_[node];
    if (!moved) moved = std::make_unique<MovedMemory>();
    return Instant{moved->end_of(started.ps, alone.ps, 2 * size.count, room)};
  }

 private:
  const NodeMemorySpec& spec_;
  std::uint64_t room_;  // bytes of an interval
  std::map<NodeId, std::unique_ptr<MovedMemory>> moved_;
};

}  // namespace dryfly::nic
