// The memory region: bytes that other ranks may read, write and update. It is bound to one end-point (FI_MR_ENDPOINT)
// and known to the simulator from fi_mr_enable until it is closed. Addresses in it are offsets from its start.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>

#include "provider/domain.hpp"
#include "provider/ep.hpp"

namespace dryfly::provider {

struct Region {
  fid_mr fid;
  Domain* domain;
  Region* next;
  Endpoint* endpoint;
  std::uint64_t start;
  std::uint64_t length;
  std::uint64_t access;
  bool enabled;
};

extern fi_ops_mr region_calls;

}  // namespace dryfly::provider
