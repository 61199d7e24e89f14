// The tagged forms of send and receive.
#pragma once

#include <rdma/fi_tagged.h>

namespace dryfly::provider {

extern fi_ops_tagged tagged_calls;

}  // namespace dryfly::provider
