// What this process is: a rank of a run or a bystander, and where its virtual clock stands. Owns `dryfly_self`, the
// block that the provider joins to (rank/self.hpp).
//
// A process becomes a rank in two steps. Its clock turns virtual when it starts, if it is linked with MPI, or else
// (Python, scripts that load MPI later) when it initialises MPI; the clocks then jump once. It runs from the moment
// MPI_Init has come back everywhere until MPI_Finalize has begun everywhere; outside that nothing that it does is
// seen by the network. Without DRYFLY_CHANNEL, and in children after fork, all clocks are real.
#pragma once

#include <time.h>

#include <cstdint>

#include "rank/self.hpp"

namespace dryfly::preload {

// CLOCK_REALTIME of virtual instant 0 before a run says otherwise: 2025-01-01T00:00:00Z. The only place.
inline constexpr std::uint64_t default_epoch_us = 1'735'689'600'000'000;
// Monotonic clocks begin here, so that no program takes an early reading for "never".
inline constexpr std::uint64_t monotonic_base_s = 1'000'000;
// MPI_Wtime has a base of its own: at 1000 s a double still resolves 0.1 ps, at a million only 0.1 ns.
inline constexpr std::uint64_t wtime_base_s = 1000;
// A reading before the run's costs are known. Not a figure of any machine: it only makes loops on a clock end.
inline constexpr std::uint64_t clock_read_before_run_ps = 1000;

enum class Phase : std::uint32_t {
  real,     // a bystander, or not yet on its served fabric: every clock is real
  before,   // the clock is virtual, the run has not begun
  running,  // between the start gate and the end gate
  ended,    // after the end gate: the clock goes on, nobody looks
};

Phase phase();
void set_phase(Phase phase);
inline bool clock_is_virtual() { return phase() != Phase::real; }

// Is this process meant to be a rank (DRYFLY_CHANNEL)?
bool belongs_to_run();
// Called when MPI is initialised: the calling thread is the rank's main thread from now on, its clock is virtual.
void become_rank();
bool on_main_thread();
pid_t main_thread_id();
// The kernel's number of the calling thread.
pid_t thread_id();
// Has this process joined a served fabric? Then its clock is virtual from that moment on, and its sleeps are real.
bool on_served_fabric();

// The rank's virtual clock, in picoseconds since virtual time began.
std::uint64_t instant();
// Moves the clock forward and tells the conductor.
void advance(std::uint64_t ps);
void advance_to(std::uint64_t instant_ps);

// What one reading of a clock costs now.
std::uint64_t clock_read_cost_ps();

// How far a clock of the program is ahead of the virtual instant, in nanoseconds: its reading is this plus instant().
std::uint64_t clock_base_ns(clockid_t clock);
// The instant at which such a clock shows `at`; 0 if that is past. `far_future` if no run lasts so long.
std::uint64_t instant_of(clockid_t clock, const timespec& at);
std::uint64_t duration_ps(const timespec& duration);

}  // namespace dryfly::preload
