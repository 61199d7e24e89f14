// Whether the provider can do what the hints of fi_getinfo ask for. What it cannot is named in the log.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "provider/attributes.hpp"

namespace dryfly::provider {

// `inject_bytes`: the largest inject, which is the run's.
bool hints_accepted(const Face& face, std::uint32_t version, const fi_info& hints, std::size_t inject_bytes);

}  // namespace dryfly::provider
