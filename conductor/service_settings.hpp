// The CXI service of the job, from the resolved spec to what ranks see of it (docs/model/services.md). A rank's provider
// keeps to it; here it is only read.
#pragma once

#include "core/spec/spec.hpp"
#include "wire/wire.hpp"

namespace dryfly {

// Throws SpecError. Without a service in the spec nothing is restricted.
wire::ServiceSettings service_settings(const Spec& spec);

}  // namespace dryfly
