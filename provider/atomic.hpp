// Atomic operations on remote memory. Which operations there are, on which types, and that a call takes one element,
// is what the machine's NIC does in hardware (libfabric's prov/cxi, cxip_atomic.c); MPI decides by it between the NIC
// and its own active messages.
#pragma once

#include <rdma/fi_atomic.h>

#include <cstdint>

namespace dryfly::provider {

extern fi_ops_atomic atomic_calls;

int query_atomic(fid_domain* domain, fi_datatype type, fi_op operation, fi_atomic_attr* attributes,
                 std::uint64_t flags);

}  // namespace dryfly::provider
