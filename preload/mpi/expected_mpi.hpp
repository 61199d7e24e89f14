// A script may start a program, or Python load a module, that uses another MPI library than the run is set up for. Its
// ranks would not find each other and each be alone. Which library it is shows when it is loaded.
#pragma once

namespace dryfly::preload {

// Ends this process, and so the run, with a sentence if its MPI library is not of the family that DRYFLY_MPI begins
// with; behind it stands the name of the run's library.
void require_expected_mpi();

}  // namespace dryfly::preload
