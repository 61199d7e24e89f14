// The domain object: one NIC. Opens everything else.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>

#include "provider/auth_key.hpp"
#include "provider/fabric.hpp"
#include "provider/peer_copies.hpp"
#include "provider/registration.hpp"

namespace dryfly::provider {

struct Region;

struct Domain {
  fid_domain fid;
  Fabric* fabric;
  std::uint32_t nic;
  std::uint32_t traffic_class;  // libfabric's label, for end-points that ask for none
  std::uint32_t users;          // objects of this domain that are open
  AuthKey auth_key;
  bool provider_keys;        // FI_MR_PROV_KEY
  bool writes_data;          // fi_writedata
  std::uint64_t keys_given;  // by the provider, so far
  Region* regions;           // list

  // Else its end-points talk through the memory of their node.
  bool has_nics() const { return fabric->face != &node_face; }
  bool registers;           // its buffers cost something
  bool knows_gpus;          // FI_HMEM was asked for, and libfabric has found their runtime
  bool maps_gpus;           // so that the processor can read and write their memory
  std::uint64_t lookup_ps;  // for asking a GPU's runtime whether a mapping still holds
  Registrations registrations;
  PeerCopies peer_copies;  // of its memory, by others of the node
};

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);
int open_domain_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags, void* context);

}  // namespace dryfly::provider
