// The traffic class of a communicator: the hint dryfly_traffic_class (docs/guide/nics.md). A NIC gives a class to
// an end-point and MPI libraries open one end-point a NIC, so there a class is the job's or the rank's; this hint is
// ours. The provider asks for the class of each tagged message, whoever sends it and when: the call, a schedule that
// some other call moves on, or a rendezvous. The answer comes from the tag, in which MPICH and Open MPI carry a number
// of the communicator. Which one it is, a probe on the communicator tells: the provider sees its tag.
//
// Left out: what has no such tag, which is one-sided communication, active messages and intercommunicators.
#pragma once

#include "preload/mpi/mpi_calls.hpp"

namespace dryfly::preload {

// The communicator that a call is about to free, or 0: the library forgets its handle in the call.
long communicator_freed_by(Call call, const long* words);
// A call has come back with success. `freed`: of communicator_freed_by.
void note_communicator(Call call, const long* words, long freed);

}  // namespace dryfly::preload
