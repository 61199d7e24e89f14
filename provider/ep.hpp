// The end-point: where messages leave and arrive. A process has up to 128, each with its index on the wire from the
// moment it is opened; the simulator knows it from fi_enable on.
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "provider/av.hpp"
#include "provider/cntr.hpp"
#include "provider/cq.hpp"
#include "provider/domain.hpp"
#include "provider/operation.hpp"
#include "provider/peer_abi.hpp"
#include "provider/process.hpp"
#include "wire/wire.hpp"

namespace dryfly::provider {

// A completion queue as it is bound for one direction.
struct BoundQueue {
  CompletionQueue* queue;
  bool selective;  // entries only for operations with FI_COMPLETION
};

struct EventQueue;
struct Group;

struct Endpoint {
  fid_ep fid;
  Domain* domain;
  AddressVector* addresses;
  BoundQueue transmit;
  BoundQueue receive;
  Counter* sends;
  Counter* receives;
  Counter* writes;
  Counter* reads;
  std::uint64_t capabilities;
  std::uint64_t order;           // FI_ORDER_*, of what it sends
  std::uint64_t transmit_flags;  // of calls that carry no flags of their own
  std::uint64_t receive_flags;
  std::size_t min_multi_receive;
  peer::SharedReceive* shared;  // another provider's receive queue, or null
  std::size_t receive_size;     // of its attributes
  std::uint32_t index;          // within the rank
  std::uint8_t traffic_class;
  bool enabled;
  bool calls_no_runtime;  // what it copies of devices' memory the processor does (FI_OPT_CUDA_API_PERMITTED: not)
  EventQueue* events;     // with FI_COLLECTIVE: how joins went
  Group* groups;          // list
  Group* joining;         // one of them, or null

  // The wire address of a peer. False: not in the table.
  bool peer(fi_addr_t handle, std::uint32_t& address) const {
    return addresses != nullptr && addresses->find(handle, address);
  }
  wire::Command command(wire::CommandKind kind) const;
};

// How an operation is to be completed.
struct Completing {
  BoundQueue bound;
  Counter* counter;
  std::uint64_t call_flags;        // FI_COMPLETION and so on
  std::uint64_t completion_flags;  // FI_SEND | FI_TAGGED and the like
  void* context;
  bool silent;  // an inject: never an entry for success
};

// A record for an operation; nullptr without memory.
Operation* begin_operation(Process& state, Endpoint& endpoint, OperationKind kind, const Completing& completing);

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);
int open_endpoint_with_flags(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags, void* context);

}  // namespace dryfly::provider
