// What the members of a PMIx group have told each other (group_calls.cpp).
#pragma once

#include "preload/pmix/pmix_abi.hpp"

namespace dryfly::preload {

// The answer to PMIx_Get for a key of groups; null if that is not asked for, or not known.
pmix::Value* look_up_in_group(const pmix::Process* process, const char* key, const pmix::Info* wishes,
                              std::size_t count);

}  // namespace dryfly::preload
