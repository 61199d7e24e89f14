// The key by which the machine's provider keeps jobs apart: the CXI service and the virtual network (VNI) of a domain
// and its end-points (fi_cxi(7)). Accepted, filled in and checked as there; end-points of different VNIs do not hear
// each other. What the job's service grants says provider/service.hpp; a job without one may use any key.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

namespace dryfly::provider {

// As in the provider's public header.
struct AuthKey {
  std::uint32_t service;
  std::uint16_t vni;
};
static_assert(sizeof(AuthKey) == 8);

// Whether the hint can be met: no key, or one of the right size with a valid VNI.
bool auth_key_accepted(const void* key, std::size_t size);
// The first of SLINGSHOT_SVC_IDS and SLINGSHOT_VNIS, as the launcher of a real machine sets them, or the job's service
// and its first VNI, or service 1 and FI_CXI_DEFAULT_VNI.
AuthKey job_auth_key();
// A copy of the key, if there is one. False without memory.
bool copy_auth_key(const void* key, std::uint8_t*& copy, std::size_t& size);
// An end-point's key has to be its domain's; one that has none takes that.
bool same_auth_key(const AuthKey& domain, const void* endpoint_key);

}  // namespace dryfly::provider
