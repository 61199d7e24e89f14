// Where the rank's virtual time goes, and which MPI call it is in: keeps RankPage::times, RankPage::profile and
// Self::call_mode. Only outermost calls count; MPI libraries call themselves. Between calls the rank computes; inside
// them it waits for as much as the provider says (Self::waited_ps) and communicates for the rest, so that the three
// add up to the clock. With several threads, time is inside MPI while any thread is.
//
// Self::thread_multiple is set when a call begins in a program that may call MPI from several threads and has made
// some. Being allowed to is not enough: mpi4py always asks for MPI_THREAD_MULTIPLE, and a process with one thread
// is repeatable. A thread that is in a call cannot start another one, so looking on entry is early enough.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "rank/self.hpp"

namespace dryfly::preload {

// Starts the accounts at the present instant. `concurrent_calls_allowed`: MPI_THREAD_MULTIPLE was granted.
void open_ledger(bool concurrent_calls_allowed);

// Enters call `index` of mpi_calls.def; returns the instant.
std::uint64_t enter_call(std::uint32_t index, rank::CallMode mode);
void leave_call(std::uint32_t index, rank::CallMode mode, std::uint64_t entered_ps, std::uint64_t bytes);

// The same for the call that ends the run: virtual time ends where it began. How long the rank then serves others
// depends on when the host sees that all have come.
void leave_last_call(std::uint32_t index, rank::CallMode mode, std::uint64_t entered_ps);

// Adds a call to the profile that took no virtual time (MPI_Init, before the run).
void note_call(std::uint32_t index);

// How many threads of the rank are inside an MPI call.
std::uint32_t threads_inside_mpi();
// Is this one, by the kernel's number? For all but the first 64 of them no is the answer.
bool thread_inside_mpi(pid_t id);
// The calling thread, which waits in MPI, lets others have the library for now, or finds no event: who does so twice
// has looked between whether it can go on. Where a library makes offers only these count.
void note_offer();
void note_look();
// Is this one inside MPI, and has it found that it cannot go on before there is another event?
bool has_looked_in_vain(pid_t id);
// Has another thread inside MPI still to look for what has come? Known of a library whose waiting threads make offers.
bool another_is_to_look();
inline bool inside_mpi() { return threads_inside_mpi() != 0; }

}  // namespace dryfly::preload
