// The CXI service of the job, from the resolved spec to what ranks see of it (docs/model/services.md). A rank's
// provider keeps to it; here it is only read.
#pragma once

#include "core/spec/spec.hpp"
#include "wire/wire.hpp"

namespace dryfly {

// `use_offset`: where the segment keeps what the ranks of each node use. Throws SpecError. Without a service in the
// spec nothing is restricted.
wire::ServiceSettings service_settings(const Spec& spec, std::uint64_t use_offset);
// Of one node.
std::uint64_t service_use_bytes(const wire::ServiceSettings& service);

}  // namespace dryfly
