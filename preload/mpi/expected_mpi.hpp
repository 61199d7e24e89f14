// Programs and libraries that a run cannot do with. A script may start a program, or Python load a module, that uses
// another MPI library than the run is set up for. Its ranks would not find each other and each be alone. Which library
// it is shows when it is loaded.
#pragma once

namespace dryfly::preload {

// Ends this process, and so the run, with a sentence if its MPI library is not of the family that DRYFLY_MPI begins
// with; behind it stands the name of the run's library.
void require_expected_mpi();

// Ends this process, and so the run, with a sentence: the MPI library starts a thread of its own that polls. What such
// a thread finds, and when, would depend on the computer, and it keeps virtual time from standing still or moving on.
[[noreturn]] void end_for_progress_thread();

}  // namespace dryfly::preload
