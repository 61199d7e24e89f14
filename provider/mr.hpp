// The memory region: bytes that other ranks may read, write and update. It is bound to one end-point (FI_MR_ENDPOINT)
// and known to the simulator from fi_mr_enable until it is closed. Addresses in it are offsets from its start. A
// counter bound to it counts every access of another end-point, reads too, as the machine's list entry does
// (C_LE_EVENT_CT_COMM).
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
  Counter* counter;  // of what others do to it, or null
  bool events;       // FI_RMA_EVENT
  bool enabled;
};

// Another end-point has read, written or updated the region with this key: its counter counts it, and data that came
// with a write goes to the receive queue. False without memory for that; `delivered` if anybody was told.
bool accept_access(Process& state, const wire::Event& event, bool& delivered);

extern fi_ops_mr region_calls;

}  // namespace dryfly::provider
