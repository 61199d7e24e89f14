// Where the rank's virtual time goes, and which MPI call it is in: keeps RankPage::times, RankPage::profile and
// Self::call_mode. Only outermost calls count; MPI libraries call themselves. Between calls the rank computes; inside
// them it waits for as much as the provider says (Self::waited_ps) and communicates for the rest, so that the three
// add up to the clock. With several threads, time is inside MPI while any thread is.
//
// Self::thread_multiple is set when a call begins in a program that may call MPI from several threads and has made
// some. Being allowed to is not enough: mpi4py always asks for MPI_THREAD_MULTIPLE, and a process with one thread
// is repeatable. A thread that is in a call cannot start another one, so looking on entry is early enough. Where calls
// have to be in turn it is set once that matters, by let_several_threads_wait().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "rank/self.hpp"

namespace dryfly::preload {

// Which threads may call MPI, by what was granted: the main thread, all in turn (MPI_THREAD_SERIALIZED), or several at
// a time.
enum class Callers : std::uint8_t { main_thread, all_in_turn, several };
// Starts the accounts at the present instant.
void open_ledger(Callers callers);
// May another thread than this one call MPI, and has one done so?
bool others_may_call();
// The main thread goes on while another one is at its calls, as MPI_THREAD_SERIALIZED allows: from now on a thread that
// waits in MPI does so step by step.
void let_several_threads_wait();

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
// Where a thread that has called MPI, and is outside now, has left it: the clock, and its own CPU clock.
struct LeftMpi {
  std::uint64_t at_ps;
  std::uint64_t cpu_ns;
};
std::optional<LeftMpi> left_mpi(pid_t id);
// The calling thread has done for its call what was to be done, and goes on with the program.
void note_left();
bool others_have_left_mpi();
// The calling thread, which waits in MPI, lets others have the library for now, or finds no event: who does so twice
// has looked between whether it can go on. Where a library makes offers only these count.
void note_offer();
void note_look();
// Is this one inside MPI, and has it found that it cannot go on before there is another event?
bool has_looked_in_vain(pid_t id);
// Has another thread inside MPI still to look for what has come? Known of a library whose waiting threads make offers.
bool another_is_to_look();
// How often MPI has been called, if no thread of the rank is inside: the same twice, none has been inside between.
inline constexpr std::uint64_t not_quiet = ~std::uint64_t{0};
std::uint64_t quiet_calls();
inline bool inside_mpi() { return threads_inside_mpi() != 0; }

}  // namespace dryfly::preload
