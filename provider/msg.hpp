// The untagged forms of send and receive.
#pragma once

#include <rdma/fi_endpoint.h>

namespace dryfly::provider {

extern fi_ops_msg message_calls;

}  // namespace dryfly::provider
