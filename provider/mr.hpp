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
  std::uint32_t mapping;  // of the domain's registrations
  std::uint64_t pages;    // wire::BufferPages
  Counter* counter;       // of what others do to it, or null
  bool events;            // FI_RMA_EVENT
  bool enabled;
};

// Another end-point has read, written or updated the region: its counter counts it, and tells whether there is one.
bool count_access(Process& state, const wire::Event& event);
// Another rank has written to it with data: the end-point's queue of receives says so. False: there is no memory for
// that, and the event has to stay.
bool report_write(Process& state, const wire::Event& event, bool& reported);

// What a key says of its region. Optimized ones take inline commands, and restricted ones where nobody is told of
// accesses. Those of applications are optimized by their number; a provider's own keys say it in bits of theirs.
bool is_optimized(const Environment& environment, const Domain& domain, std::uint64_t key);
bool tells_of_accesses(const Domain& domain, std::uint64_t key);

extern fi_ops_mr region_calls;

}  // namespace dryfly::provider
