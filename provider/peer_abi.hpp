// The part of libfabric 2's peer interface (rdma/providers/fi_peer.h) that a linked provider needs, as far as its
// binary layout goes: no distribution ships that header, and the one of libfabric 1.17 has another layout. Its
// tables begin with their size, which tells the two apart.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace dryfly::provider::peer {

struct Queue;

struct QueueOwnerCalls {
  std::size_t size;
  ssize_t (*write)(Queue* queue, void* context, std::uint64_t flags, std::size_t length, void* buffer,
                   std::uint64_t data, std::uint64_t tag, fi_addr_t source);
  ssize_t (*write_error)(Queue* queue, const fi_cq_err_entry* entry);
};

// The owner's completion queue.
struct Queue {
  struct fid fid;
  QueueOwnerCalls* owner_calls;
};

struct QueueContext {
  std::size_t size;
  Queue* queue;
};

struct SharedReceive;

// A receive that the application has posted with the owner, or a message that waits there for one.
struct Entry {
  SharedReceive* shared;
  fi_addr_t source;
  std::size_t message_bytes;
  std::uint64_t tag;
  std::uint64_t data;
  std::uint64_t flags;
  void* context;
  std::size_t count;
  void** descriptors;
  void* peer_context;  // the provider's own
  void* owner_context;
  iovec* parts;
};

struct Match {
  fi_addr_t source;
  std::size_t message_bytes;
  std::uint64_t tag;
};

struct ReceiveOwnerCalls {
  std::size_t size;
  int (*get_untagged)(SharedReceive* shared, Match* match, Entry** entry);
  int (*get_tagged)(SharedReceive* shared, Match* match, Entry** entry);
  int (*queue_untagged)(Entry* entry);
  int (*queue_tagged)(Entry* entry);
  void (*for_each_unknown_source)(SharedReceive* shared, fi_addr_t (*source_of)(Entry* entry));
  void (*free_entry)(Entry* entry);
};

struct ReceivePeerCalls {
  std::size_t size;
  int (*start_untagged)(Entry* entry);
  int (*start_tagged)(Entry* entry);
  int (*discard_untagged)(Entry* entry);
  int (*discard_tagged)(Entry* entry);
};

// The owner's receive queue, shared by the providers that it links.
struct SharedReceive {
  fid_ep fid;
  ReceiveOwnerCalls* owner_calls;
  ReceivePeerCalls* peer_calls;
};

struct ReceiveContext {
  std::size_t size;
  SharedReceive* shared;
};

}  // namespace dryfly::provider::peer
