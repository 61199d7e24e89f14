// The fabric object: the network as a whole. Opens domains and event queues.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "provider/attributes.hpp"

namespace dryfly::provider {

struct Fabric {
  fid_fabric fid;
  std::uint32_t users;  // domains and event queues that are open
  const Face* face;
};

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);
int open_node_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

}  // namespace dryfly::provider
