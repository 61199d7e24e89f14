// Adds the program's own computing to the virtual clock (host.compute_mode). A gap is what lies between two outermost
// MPI calls of the main thread. `measured`: the CPU time of the gap without what looking at that clock takes, times the
// machine's factor. `replay`: what a recorded run added at the same place. `none`: nothing.
//
// A gap is not only looked at where it ends: a program that times its own loop reads the clock inside it, so clock
// readings, sleeps and timed waits of the main thread are points of observation as well. A point's place in a recording
// is the number of calls of MPI before it, without polls, and of polls and readings behind the last of them: how many
// of these there are varies with the time that messages take. What a run has too few of is added at the next call, and
// what it has too many of adds nothing. Left out: computing of helper threads beside that of the main thread (OpenMP).
//
// A thread that waits in MPI beside one that computes moves the clock too. It goes no further than that one has come by
// its CPU time, and what it has moved is not added again at the end of the main thread's gap. What the one that
// computes adds itself at a point of observation the clock comes to as preload/clock/common_clock.hpp says.
#pragma once

#include <cstdint>

namespace dryfly::preload {

enum class Observation {
  within_gap,  // a reading of the clock
  at_poll,     // the gap ends with a call that is made again and again until something has happened
  end_of_gap,  // with any other
};

// Begins, with the run: takes the mode from the header and opens the recording (DRYFLY_COMPUTE_RECORD or
// DRYFLY_COMPUTE_REPLAY, each a folder with a file rank-N.bin per rank).
void open_compute();
// Ends, with the run: completes the recording, or reports a replay that did not fit.
void close_compute();

// The main thread leaves an MPI call.
void begin_gap();
// The main thread reaches a point of observation: moves the clock by what was computed since the last one.
void observe_compute(Observation observation);
// The main thread's clock where its computing is being measured, else 0; and what it has used since that is not its
// computing.
std::uint64_t computing_clock_ns();
void leave_out_since(std::uint64_t clock_ns);
// What that much processor time is in virtual time.
std::uint64_t computed_ps(std::uint64_t cpu_ns);
// The instant to which the main thread has come, with what it has computed in its present gap.
std::uint64_t main_comes_to_ps();
// It is where the clock is: it has waited for that, or been observed.
void main_is_at_clock();
// It has waited for another one, and goes on no sooner than there.
void main_goes_on_at(std::uint64_t at_ps);
// Is the calling thread the main one, and outside MPI?
bool is_in_gap();
bool computing_is_measured();
// Ends the gap where the calling thread is the main thread and in one; says whether it was.
bool leave_gap();
// Has another thread, which has called MPI before and runs outside it now, not come to that instant by its CPU time?
bool another_comes_before(std::uint64_t at_ps);
// How far a thread that waits in MPI may move the clock: by what another one has computed that runs or only lacks a
// processor, or as far as it likes where all others sleep.
std::uint64_t reach_beside_threads();

}  // namespace dryfly::preload
