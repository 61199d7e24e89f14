// The record of an operation that is under way. Its id travels to the simulator as Command::context and comes
// back in each event that belongs to it; the generation in the upper half tells an event whose record is gone (its
// end-point was closed) from one of the record's next user.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::provider {

struct CompletionQueue;
struct Counter;
struct Deferred;
struct Endpoint;
namespace peer {
struct Entry;
}

using OperationId = std::uint64_t;  // 0: no operation

enum class OperationKind : std::uint8_t { free = 0, transfer, receive, peek, claim, count };

struct Operation {
  std::uint32_t generation;
  std::uint32_t next;  // index + 1: of itself in use, of the following record in the free list
  OperationKind kind;
  bool reported;  // success is worth an entry of the completion queue; errors always are
  bool multi_receive;
  bool discards;  // peek: the message found is thrown away
  bool claims;    // peek: the message found is kept for the receive that claims it
  bool sets;      // count: it is a FI_OP_CNTR_SET
  bool waits;     // peek: for the next message that the NIC has no receive for
  Endpoint* endpoint;
  CompletionQueue* queue;
  Counter* counter;
  void* context;        // the user's
  std::uint64_t flags;  // FI_SEND | FI_TAGGED and the like, as the completion shows them
  void* buffer;
  std::uint64_t length;
  peer::Entry* entry;    // receive, claim: its receive in the owner's queue
  Deferred* work;        // nullptr: it was not deferred
  std::uint32_t source;  // claim
  std::uint32_t block;   // receive: rank::Software::found_block
};

class Operations {
 public:
  // A zeroed record; nullptr without memory.
  Operation* add(OperationKind kind);
  // nullptr when the id's record is gone.
  Operation* find(OperationId id);
  OperationId id_of(const Operation& operation) const;
  void remove(Operation& operation);
  void remove_all_of(const Endpoint& endpoint);
  // An operation of that kind which the user knows by `context`, or nullptr.
  Operation* find_by_context(const Endpoint& endpoint, OperationKind kind, const void* context);

 private:
  static constexpr std::uint32_t slab_size = 256;
  struct Slab {
    Operation operations[slab_size];
  };
  bool grow();
  Operation& at(std::uint32_t index) { return slabs_[index / slab_size]->operations[index % slab_size]; }
  template <class Visit>
  void each(Visit visit);

  Slab** slabs_ = nullptr;
  std::uint32_t slab_count_ = 0;
  std::uint32_t free_ = 0;  // index + 1
};

}  // namespace dryfly::provider
