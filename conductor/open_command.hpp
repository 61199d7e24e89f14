// Every command that a rank has issued and that is not finished: the command itself, its inline payload, and what
// has happened to it. The slot number is the Token under which core/nic knows the command.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/unit/pool.hpp"
#include "core/unit/unit.hpp"
#include "wire/wire.hpp"

namespace dryfly {

inline constexpr std::uint32_t no_slot = 0xffffffffU;

// Of memory that another process has registered.
constexpr bool is_access(wire::CommandKind kind) {
  switch (kind) {
    case wire::CommandKind::write:
    case wire::CommandKind::read:
    case wire::CommandKind::atomic:
    case wire::CommandKind::fetch_atomic:
    case wire::CommandKind::compare_atomic:
      return true;
    default:
      return false;
  }
}

struct OpenCommand {
  wire::Command command{};
  RankId rank;
  std::uint32_t tenancy = 0;            // of the rank, when it was issued
  std::uint32_t inline_slot = no_slot;  // payload that came with the record, or a small result
  std::uint64_t result_offset = 0;      // arena: what a read or a fetching atomic brings back
  std::uint64_t result_bytes = 0;
  // The receiver still has to copy the payload from the sender's memory: the send completion waits for it.
  RankId copier;
  std::uint64_t copy_number = 0;  // 0: nobody copies
  bool sent = false;
  bool payload_gone = false;  // delivered or dropped: the send no longer needs its payload

  EndpointId endpoint() const { return EndpointId{wire::make_address(rank.value, command.endpoint)}; }
};

struct InlinePayload {
  std::array<std::byte, wire::inline_bytes_max> bytes;
};

class OpenCommands {
 public:
  std::uint32_t allocate() { return commands_.acquire_as_left(); }
  OpenCommand& operator[](std::uint64_t token) { return commands_[static_cast<std::uint32_t>(token)]; }
  void prefetch(std::uint32_t slot) const { commands_.prefetch(slot); }
  std::byte* inline_bytes(const OpenCommand& open) {
    DRYFLY_CHECK(open.inline_slot != no_slot);
    return payloads_[open.inline_slot].bytes.data();
  }
  std::byte* attach_inline(OpenCommand& open) {
    if (open.inline_slot == no_slot) open.inline_slot = payloads_.acquire_as_left();
    return inline_bytes(open);
  }
  void release(std::uint64_t token) {
    const auto slot = static_cast<std::uint32_t>(token);
    if (commands_[slot].inline_slot != no_slot) payloads_.release(commands_[slot].inline_slot);
    commands_[slot] = OpenCommand{};
    commands_.release(slot);
  }
  // The slot of the one command that `matches`, or no_slot. Looks at all: for rare commands.
  template <class Predicate>
  std::uint32_t find(Predicate matches) {
    for (std::uint32_t slot = 0; slot < commands_.size(); ++slot) {
      if (matches(commands_[slot])) return slot;
    }
    return no_slot;
  }
  std::size_t in_use() const { return commands_.in_use(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(commands_.size()); }

 private:
  Pool<OpenCommand, 13> commands_;
  Pool<InlinePayload, 13> payloads_;
};

}  // namespace dryfly
