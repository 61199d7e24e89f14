// The completion queue: a ring that grows, so that a completion is never lost. A read takes what is visible at the
// rank's instant; one that finds nothing costs a poll and may let virtual time pass (see News).
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "core/unit/check.hpp"
#include "provider/av.hpp"
#include "provider/device_memory.hpp"
#include "provider/domain.hpp"
#include "provider/news.hpp"
#include "provider/operation.hpp"
#include "provider/wait.hpp"

namespace dryfly::provider {

namespace peer {
struct Entry;
struct Queue;
}  // namespace peer

struct Completion {
  void* context;
  std::uint64_t flags;
  std::uint64_t length;
  void* buffer;
  std::uint64_t data;
  std::uint64_t tag;
  AddressVector* sources;  // turns `source` into an fi_addr_t; null where there is no source
  std::uint32_t source;
  int error;                    // 0, or a libfabric error number: an error entry
  int provider_error;           // of an error entry; 0: the same number
  std::uint64_t missing_bytes;  // truncated
  OperationId operation;        // whose it is; 0: nobody's
  OperationId arrived;          // a message whose arrival this is (provider/peer.hpp); 0: a completion
  std::uint32_t block;          // of a receive's buffer: rank::Software::found_block
  bool by_software;             // its message was matched by software, which whoever takes it has to pay for
  DeviceCopy copy;              // by which its bytes get from the provider's memory into its buffer
  bool is_work;                 // no completion, but work that the NIC asks for (see work.hpp)
};

struct CompletionQueue {
  fid_cq fid;
  Domain* domain;
  Outlet outlet;
  WaitObject wait;
  std::uint32_t users;  // end-points that are bound to it
  fi_cq_format format;
  Completion* ring;
  std::uint64_t capacity;  // a power of two
  std::uint64_t head;      // entries written, ever
  std::uint64_t tail;      // entries taken, ever
  peer::Queue* owner;      // the queue that completions are passed on to, or null
  // Of several queues with one owner the first one opened is the one queue that all their end-points use: an owner
  // reads them all each time, and is given one completion.
  CompletionQueue* one;
  CompletionQueue* next;   // with an owner
  std::size_t size_asked;  // by its attributes or the environment: what the hardware's event queue has to hold

  std::uint64_t size() const { return head - tail; }
  // Makes room for one more; false without memory.
  bool reserve();
  void put(const Completion& completion) {
    DRYFLY_CHECK(size() < capacity);  // who puts one has reserved its place, so none is lost
    ring[head++ & (capacity - 1)] = completion;
  }
};

int open_completion_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context);

}  // namespace dryfly::provider
