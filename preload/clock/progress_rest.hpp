// Open MPI's progress loop, where several threads of a rank come round it. One of them has the library's lock of its
// completions, and with that it waits for the rank's next event. Each other one tries the lock in vain, again and
// again: it takes the processor for whole slices of time from the conductor and from those who have been woken, it
// looks as if it computed, and hides a woken thread from the one that waits (compute.hpp). Six ranks of four threads
// took a minute for what takes seconds, and virtual time ran ahead of threads that only lacked a processor. Open MPI
// offers the processor after each turn of the loop that found nothing (mpi_yield_when_idle, which
// python/dryfly/mpi/openmpi.py sets). So there such a thread rests until another one has taken an event, has signalled
// a condition (which Open MPI does for each request that is complete) or has left the library. Not one that probes: a
// message that has come completes nothing, so it has to look.
#pragma once

namespace dryfly::preload {

// Is this return address, of a sched_yield, in Open MPI's progress loop? Then the thread has rested, where it is to.
bool rests_in_progress(const void* return_address);

// The calling thread is in MPI_Probe or MPI_Mprobe, or no longer.
void note_probing(bool probes);
// What a thread rests for may have come.
void end_rests();
// The calling thread has taken a completion, whoever had its event from the ring, or has copied: what comes of it
// others are told when it has found nothing more.
void note_getting_on();

}  // namespace dryfly::preload
