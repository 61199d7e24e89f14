// Barrier, broadcast, reduce and allreduce of a group, carried out by the fabric (core/nic/reductions.hpp): payloads
// of at most 32 bytes, eight at a time, with the operations and types that libfabric's cxi provider has (cxip_coll.c)
// and its answers to all others. All of them synchronise: a broadcast is an or, with zeros from all but the root.
// FI_MORE adds to an accumulator in the process's memory, FI_CXI_PRE_REDUCED (FI_SOURCE) gives one away.
#pragma once

#include <rdma/fi_collective.h>

#include "provider/operation.hpp"
#include "provider/process.hpp"

namespace dryfly::provider {

int query_collective(fid_domain* domain, fi_collective_op collective, fi_collective_attr* attributes,
                     std::uint64_t flags);

extern fi_ops_collective collective_calls;
// Of an end-point without FI_COLLECTIVE.
extern fi_ops_collective no_collective_calls;

struct Completion;
// What a status of wire::ReductionStatus, or the loss of a reduction, is to the application.
void set_reduction_error(const wire::Event& event, Completion& completion);

}  // namespace dryfly::provider
