// Every command that a rank has issued and that is not finished: the command itself, its inline payload, and what
// has happened to it. The slot number is the Token under which core/nic knows the operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/unit/pool.hpp"
#include "core/unit/unit.hpp"
#include "wire/wire.hpp"

namespace dryfly {

inline constexpr std::uint32_t no_slot = 0xffffffffU;

struct Operation {
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

class Operations {
 public:
  std::uint32_t allocate() { return operations_.acquire_as_left(); }
  Operation& operator[](std::uint64_t token) { return operations_[static_cast<std::uint32_t>(token)]; }
  void fetch(std::uint32_t slot) const { operations_.fetch(slot); }
  std::byte* inline_bytes(const Operation& operation) { return payloads_[operation.inline_slot].bytes.data(); }
  std::byte* attach_inline(Operation& operation) {
    if (operation.inline_slot == no_slot) operation.inline_slot = payloads_.acquire_as_left();
    return inline_bytes(operation);
  }
  void release(std::uint64_t token) {
    const auto slot = static_cast<std::uint32_t>(token);
    if (operations_[slot].inline_slot != no_slot) payloads_.release(operations_[slot].inline_slot);
    operations_[slot] = Operation{};
    operations_.release(slot);
  }
  // The slot of the one operation that `matches`, or no_slot. Looks at all: for rare commands.
  template <class Predicate>
  std::uint32_t find(Predicate matches) {
    for (std::uint32_t slot = 0; slot < operations_.size(); ++slot) {
      if (matches(operations_[slot])) return slot;
    }
    return no_slot;
  }
  std::size_t in_use() const { return operations_.in_use(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(operations_.size()); }

 private:
  Pool<Operation, 13> operations_;
  Pool<InlinePayload, 13> payloads_;
};

}  // namespace dryfly
