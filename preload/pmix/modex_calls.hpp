// What the preload's PMIx functions have in common.
#pragma once

#include "preload/pmix/pmix_abi.hpp"

namespace dryfly::preload {

// The function of the PMIx below the MPI library. Python loads that for itself alone, so RTLD_NEXT misses it there.
void* next_pmix_function(const char* name);
// Whether the process belongs to this rank's job.
bool in_own_name_space(const pmix::Process& process);

}  // namespace dryfly::preload
