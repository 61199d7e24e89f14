// The event queue. The provider itself reports nothing through it: address insertion and memory registration are
// done when their calls return. It carries what the application writes into it.
#pragma once

#include <rdma/fi_eq.h>

namespace dryfly::provider {

int open_event_queue(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** queue, void* context);

}  // namespace dryfly::provider
