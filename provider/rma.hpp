// One-sided reads and writes. Remote addresses are offsets into the region that the key names. Writes with remote CQ
// data need FI_CXI_ENABLE_WRITEDATA, as with the machine's provider.
#pragma once

#include <rdma/fi_rma.h>

namespace dryfly::provider {

extern fi_ops_rma rma_calls;
extern fi_ops_rma rma_calls_with_data;  // where FI_CXI_ENABLE_WRITEDATA allows them

}  // namespace dryfly::provider
