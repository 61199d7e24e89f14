// What the queues are by which NICs get, and how the parts of an answer follow each other in one of them.
//
// Models docs/model/nic-protocols.md#queues-of-gets and #which-queue.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/unit/random.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

struct GetQueueSpec {
  static constexpr unsigned at_once = 2;  // parts of an answer, lest the link is idle while one is on its way

  std::uint32_t of_rendezvous = 0;  // queues of a NIC and class; 0: each answer leaves as it comes
  std::uint32_t of_reads = 0;       // the same, for what the CPU asks for: software's Gets of rendezvous, too
  Bytes window{};                   // of a queue, under way
  Bytes packet{};                   // its payload

  std::uint32_t queues(bool is_asked_by_cpu) const { return is_asked_by_cpu ? of_reads : of_rendezvous; }
  // Of so many, by which one a NIC gets what it gets as its `count`-th.
  static std::uint64_t draw(std::uint64_t nic, std::uint32_t count, std::uint32_t queues) {
    return mix(nic << 32 | count) % queues;
  }
  // What an answer's next part has, of which `left` is in no part yet. They become shorter towards its end, so that the
  // next answer begins in time.
  std::uint64_t next_part(std::uint64_t left) const {
    return left <= least() ? left : std::max(least(), in_packets(left / 2));
  }
  // Of the answer that has begun there may be more than the window at once, for nothing comes before it in its queue;
  // the next one waits until what is left of this leaves it room.
  bool may_begin(std::uint64_t next_part, std::uint64_t under_way) const {
    return under_way == 0 || under_way + std::min(next_part, least()) <= window.count;
  }

 private:
  std::uint64_t in_packets(std::uint64_t bytes) const { return bytes / packet.count * packet.count; }
  std::uint64_t least() const { return std::max(packet.count, in_packets(window.count / 2)); }
};

}  // namespace dryfly::nic
