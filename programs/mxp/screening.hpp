// What each rank can do with the kernel that the run takes; otherwise as dryfly-hpl (programs/hpl/screen.hpp).
#pragma once

#include "../hpl/screen.hpp"
#include "kernel.hpp"

namespace dryfly::mxp {

// Collective.
hpl::Screening screen(Kernel& kernel, std::int64_t block, MPI_Comm where);

}  // namespace dryfly::mxp
