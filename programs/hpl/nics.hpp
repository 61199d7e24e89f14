// Several NICs for each process, for the phases that are to have NICs of their own (NicHints). MPICH opens one NIC a
// process unless MPIR_CVAR_CH4_OFI_MAX_NICS says otherwise, and it takes the hint for a NIC by its number on the node.
// Where a process has not opened that one, MPICH 5.0.2 and its main branch go on with what is in fresh memory and crash
// (update_nic_preferences). So it is all of them or none.
#pragma once

#include "grid.hpp"

namespace dryfly::hpl {

// Before MPI_Init: lets MPICH open every NIC if the command line gives NICs to phases. What the user has set stays.
void ask_for_nics(int count, char** arguments);

// After MPI_Init: refuses a setting with which the hints would end in MPICH's crash. Throws BadInput.
void check_nics(const NicHints& asked);

}  // namespace dryfly::hpl
