// Every command that a rank has issued and that is not finished: the command itself, its inline payload, and what
// has happened to it. The slot number is the Token under which core/nic knows the operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/unit/stable_vector.hpp"
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

// Slots with stable addresses, reused last in, first out.
template <class T>
class SlotPool {
 public:
  std::uint32_t allocate() {
    if (free_.empty()) {
      slots_.emplace_back();
      return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void release(std::uint32_t slot) { free_.push_back(slot); }
  T& operator[](std::uint32_t slot) { return slots_[slot]; }
  void fetch(std::uint32_t slot) const { slots_.fetch(slot); }
  std::size_t in_use() const { return slots_.size() - free_.size(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }

 private:
  StableVector<T, 13> slots_;
  std::vector<std::uint32_t> free_;
};

struct InlinePayload {
  std::array<std::byte, wire::inline_bytes_max> bytes;
};

class Operations {
 public:
  std::uint32_t allocate() { return operations_.allocate(); }
  Operation& operator[](std::uint64_t token) { return operations_[static_cast<std::uint32_t>(token)]; }
  void fetch(std::uint32_t slot) const { operations_.fetch(slot); }
  std::byte* inline_bytes(const Operation& operation) { return payloads_[operation.inline_slot].bytes.data(); }
  std::byte* attach_inline(Operation& operation) {
    if (operation.inline_slot == no_slot) operation.inline_slot = payloads_.allocate();
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
  std::uint32_t size() const { return operations_.size(); }

 private:
  SlotPool<Operation> operations_;
  SlotPool<InlinePayload> payloads_;
};

}  // namespace dryfly
