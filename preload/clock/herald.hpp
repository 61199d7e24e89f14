// A thread of the rank that says how far the main thread has computed, when the conductor asks. So others go on beside
// a rank that computes for long, as far as its clock has come, and not only when it calls MPI again
// (docs/decision/0017). Only a thread of the same process is told another one's CPU clock as it runs; to others the
// kernel shows it as of its last tick.
//
// What has been said binds the rank: its clock is no less at its next point of observation.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace dryfly::preload {

// Makes the thread. Where the kernel does not allow one nothing is ever said.
void open_herald();
// The main thread computes from now on: at the reading `from_ns` of its CPU clock its virtual clock is at `base_ps`,
// and it goes on by factor_ppm millionths of what is computed.
void let_herald_tell(std::uint64_t base_ps, std::uint64_t from_ns, std::uint64_t factor_ppm);
// Nothing is said until it is let again. Returns the instant that was said last since then, 0 if none was.
std::uint64_t hush_herald();
// Another thread calls MPI: the rank may act while the main thread computes, so nothing is said any more. Returns as
// hush_herald().
std::uint64_t dismiss_herald();
// The kernel's number of the thread; 0: there is none.
pid_t herald_thread();

}  // namespace dryfly::preload
