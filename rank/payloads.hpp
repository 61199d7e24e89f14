// How payload gets from one process to another: behind its record, through the arena, or read by the receiver from the
// sender's memory. And what a rank copies for others: what its NIC would, where the system forbids the conductor.
#pragma once

#include <cstdint>

#include "rank/attachment.hpp"
#include "rank/attention.hpp"
#include "rank/event_ring.hpp"
#include "wire/arena.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class Payloads {
 public:
  Payloads(const Attachment& attachment, Attention attention)
      : attachment_(attachment),
        attention_(attention),
        base_(attachment.base),
        header_(attachment.header),
        page_(attachment.page) {
    arena_.open(base_, header_, page_->arena_hands);
  }

  // Messages up to here are complete at their source before their target has copied them: they go by the arena.
  void stage_up_to(std::uint64_t bytes) {
    if (bytes > staged_max_) staged_max_ = bytes;
  }
  // Chooses how `length` bytes at `payload` travel, copies them to the arena if need be, and says so in the command.
  // False when the arena is full. `stable`: the caller keeps the buffer unchanged until completion (not inject).
  bool prepare(wire::Command& command, const void* payload, std::uint64_t length, bool stable) {
    using namespace wire::command_flag;
    command.length = length;
    command.flags &= ~(payload_inline | payload_arena | payload_memory);
    if (length > header_->inline_max) return prepare_long(command, payload, stable);
    command.flags |= payload_inline;
    return true;
  }
  // Copies the payload of an event to where it belongs (event.buffer, event.place_length bytes; or `to` if not
  // null), and releases the source. To be called once for each event that carries a payload flag. Returns 0 or a
  // positive errno.
  int place(const wire::Event& event, void* to);
  // A rank that waits at its gate copies what has arrived for it although its clock is not there yet: the sender's
  // completion waits for the copy, and this rank's clock may in turn wait for the sender. The bytes go where a posted
  // receive wants them, which the program must not look at before its completion.
  void copy_early(EventRing& events);
  // Copies between its own memory and the arena what the conductor has asked for.
  void serve() {
    const std::uint32_t wanted = page_->service.request.load(std::memory_order_acquire);
    if (wanted != page_->service.done.load(std::memory_order_relaxed)) serve(wanted);
  }

 private:
  bool prepare_long(wire::Command& command, const void* payload, bool stable);
  void serve(std::uint32_t wanted);
  void copy_from_arena(std::uint64_t offset, std::uint64_t length, char* target);
  int copy_from_sender(const wire::Event& event, char* target);

  static constexpr std::uint32_t parts_known = 1024;

  const Attachment& attachment_;
  Attention attention_;
  char* base_;
  wire::SegmentHeader* header_;
  wire::RankPage* page_;
  wire::Arena arena_;
  std::uint64_t staged_max_ = 0;
  std::uint32_t visited_parts_[parts_known] = {};  // of the arena by number, the last of those that fall together
};

}  // namespace dryfly::rank
