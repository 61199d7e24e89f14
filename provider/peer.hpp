// The provider as one of several that another links together: libfabric's lnx (LINKx) owns the receive queue and the
// completion queue, and matches messages to receives itself (docs/model/mpi.md#linkx). The end-point therefore posts
// nothing. It keeps peeks waiting in the NIC; each that is answered reserves a message and tells of its arrival. The
// owner is asked for a receive, and when there is one, now or later, the message is taken into its buffer.
//
// Matching is the processor's here: a message makes no progress until the rank polls, and takes one more exchange
// between processor and NIC than where the NIC matches. That cost is what the model gives and is not calibrated.
#pragma once

#include <rdma/fi_domain.h>

#include "provider/cq.hpp"
#include "provider/ep.hpp"
#include "provider/operation.hpp"
#include "provider/peer_abi.hpp"
#include "provider/process.hpp"

namespace dryfly::provider::peer {

// fi_srx_context with FI_PEER: takes the owner's receive queue.
int open_shared_receive(fid_domain* domain, fi_rx_attr* attributes, fid_ep** shared, void* context);

// Binds what open_shared_receive gave.
int bind_shared_receive(Endpoint& endpoint, const fid& shared);

// To be called when the end-point is enabled: arrivals are told from now on.
int watch_arrivals(const Session& session, Endpoint& endpoint);

// The answer to a waiting peek goes to the completion queue as an arrival; it is met in the order of completions,
// one with each read, so that what the owner sees depends on the rank's instant only.
Completion arrival(const Operation& watch, const wire::Event& event, OperationId id);
void meet(const Session& session, const Completion& arrival);

// A completion goes to the owner's queue.
void pass_on(const CompletionQueue& queue, const Completion& completion);

// New addresses are in the table: messages whose source had none get it now.
void name_sources(const AddressVector& addresses);

}  // namespace dryfly::provider::peer
