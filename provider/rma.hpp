// One-sided reads and writes. Remote addresses are offsets into the region that the key names. Writes with remote CQ
// data are refused, as by the machine's provider unless FI_CXI_ENABLE_WRITEDATA is set.
#pragma once

#include <rdma/fi_rma.h>

namespace dryfly::provider {

extern fi_ops_rma rma_calls;

}  // namespace dryfly::provider
