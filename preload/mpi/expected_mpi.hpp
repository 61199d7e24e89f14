// Programs and libraries that a run cannot do with. A script may start a program, or Python load a module, that uses
// another MPI library than the run is set up for. Its ranks would not find each other and each be alone. Which library
// it is shows when it is loaded.
#pragma once

namespace dryfly::preload {

// Ends this process, and so the run, with a sentence if it is a launcher, as in a script that says `mpirun -n 4
// PROGRAM`: each rank would start a job of its own.
void refuse_launcher();

// Ends them with a sentence if the process has an MPI library in LD_PRELOAD, where `env` or a script has put it: its
// functions come before the preload's.
void refuse_preloaded_mpi();

// Ends this process, and so the run, with a sentence if its MPI library is not of the family that DRYFLY_MPI begins
// with, behind which stands the name of the run's library, if it is another than DRYFLY_LIBMPI or one beside that, or
// if there are two in the process, or two of what Open MPI is built on.
void require_expected_mpi();

// Ends them with a sentence if `function`, which the program has looked up, is of another MPI library than the run's.
void refuse_second_mpi(const void* function);

// Ends them with a sentence: MPI_Init has come back, and the library has not come to the simulated network. It would
// run over this computer's own, in real time.
[[noreturn]] void end_for_other_network();

// Ends them with a sentence where MPI_Comm_split_type is asked for number 4 by a program that was built with an MPICH
// before 4.2: to it that is MPIX_COMM_TYPE_NEIGHBORHOOD, and since then MPI_COMM_TYPE_RESOURCE_GUIDED.
void refuse_old_split_type(long type);

// Ends them with a sentence where Open MPI is asked for memory that the ranks of a node share and has no component for
// it, because its ranks do not: its own message would not be seen.
void refuse_shared_window();

// Says that `call` (MPI_Comm_spawn and its like) fails, and ends them where it would end the program: ranks that come
// later have no place in the conductor's segment. A program that handles the error goes on.
void refuse_spawn(const char* call, long communicator);

// Ends them with a sentence where a communicator is made from a group of several ranks over LINKx
// (docs/guide/linkx.md): Open MPI does not come out of it, and takes all of the computer's memory meanwhile.
void refuse_group_over_linkx(unsigned long members);

// Ends this process, and so the run, with a sentence: the MPI library starts a thread of its own that polls. What such
// a thread finds, and when, would depend on the computer, and it keeps virtual time from standing still or moving on.
[[noreturn]] void end_for_progress_thread();

}  // namespace dryfly::preload
