// The ring into which a rank writes its commands, and from which the conductor takes them.
#pragma once

#include <string.h>

#include <cstdint>

#include "core/unit/check.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class CommandRing {
 public:
  // `bytes`: a power of two.
  CommandRing(wire::RankPage* page, char* ring, std::uint32_t bytes) : page_(page), ring_(ring), bytes_(bytes) {
    DRYFLY_CHECK((bytes & (bytes - 1)) == 0);
  }

  // What a command will take of the ring.
  struct Room {
    std::uint32_t record_bytes;
    bool wraps;  // goes on at the ring's start
    bool is_free;
  };
  Room room_for(const wire::Command& command) const {
    const bool is_inline = (command.flags & wire::command_flag::payload_inline) != 0;
    DRYFLY_CHECK(!is_inline || command.length <= wire::inline_bytes_max);
    const std::uint32_t bytes = wire::command_bytes + (is_inline ? static_cast<std::uint32_t>(command.length) : 0);
    const std::uint32_t whole = (bytes + wire::record_granule - 1) / wire::record_granule * wire::record_granule;
    const std::uint64_t taken = page_->command_tail.load(std::memory_order_acquire);
    const bool rewinds = taken == head_ && place() >= wire::ring_rewind_bytes;
    const bool wraps = whole > to_end() || rewinds;
    return {whole, wraps, head_ + (wraps ? whole + to_end() : whole) - taken <= bytes_};
  }

  // Into room that is free.
  void append(wire::Command& command, const void* payload, const Room& room) {
    if (room.wraps) {
      *reinterpret_cast<std::uint32_t*>(ring_ + place()) = wire::wrap_record;
      head_ += to_end();
    }
    command.record_bytes = room.record_bytes;
    char* record = ring_ + place();
    memcpy(record, &command, sizeof command);
    const bool brings_bytes = (command.flags & wire::command_flag::payload_inline) != 0 && command.length > 0;
    if (brings_bytes) memcpy(record + wire::command_bytes, payload, command.length);
    head_ += room.record_bytes;
    page_->command_head.store(head_, std::memory_order_release);
  }

 private:
  std::uint64_t place() const { return head_ & (bytes_ - 1); }
  std::uint64_t to_end() const { return bytes_ - place(); }

  wire::RankPage* page_;
  char* ring_;
  std::uint32_t bytes_;
  std::uint64_t head_ = 0;  // bytes written, ever
};

}  // namespace dryfly::rank
