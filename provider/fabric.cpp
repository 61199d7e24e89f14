#include "provider/fabric.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/domain.hpp"
#include "provider/eq.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/unsupported.hpp"
#include "provider/wait.hpp"

namespace dryfly::provider {

namespace {

int close_fabric(fid* fid) {
  const Session session;
  auto* fabric = object_of<Fabric>(fid);
  if (fabric->users != 0) return -FI_EBUSY;
  free(fabric);
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_fabric,
    .bind = unsupported,
    .control = unsupported,
    .ops_open = unsupported,
};

fi_ops_fabric fabric_calls = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = unsupported,
    .eq_open = open_event_queue,
    .wait_open = unsupported,
    .trywait = try_wait,
    .domain2 = open_domain_with_flags,
};

int open(const Face& face, fi_fabric_attr* attributes, fid_fabric** fid, void* context) {
  if (attributes->name != nullptr && strcmp(attributes->name, face.name) != 0) return -FI_ENODATA;
  if (attach() == nullptr) return -FI_ENODATA;
  auto* fabric = allocate<Fabric>();
  if (fabric == nullptr) return -FI_ENOMEM;
  fabric->fid.fid.fclass = FI_CLASS_FABRIC;
  fabric->fid.fid.context = context;
  fabric->fid.fid.ops = &object_calls;
  fabric->fid.ops = &fabric_calls;
  fabric->fid.api_version = attributes->api_version;
  fabric->face = &face;
  *fid = &fabric->fid;
  return 0;
}

}  // namespace

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  return open(network_face, attributes, fabric, context);
}

int open_node_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  return open(node_face, attributes, fabric, context);
}

}  // namespace dryfly::provider
