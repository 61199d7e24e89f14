// Open MPI 5 keeps locks, counters and posts of one-sided communication in the memory of windows. It changes those of
// other ranks by RMA and looks at its own directly, as processors and real NICs let it: what it sees then has to be
// what virtual time says. Once a program makes a window, its ranks ask to have it so (RankPage::watches_memory); see
// docs/decision/0006. Where a library needs it is known to who starts the ranks: DRYFLY_WATCH_WINDOWS.
#pragma once

#include "preload/mpi/mpi_calls.hpp"
#include "rank/self.hpp"

namespace dryfly::preload {

// MPI_Put and its like are local by the standard, but there they wait for the NIC.
rank::CallMode mode_with_windows(Call call, rank::CallMode mode);
// On entry of an MPI call: where the clock has moved since the last one, or far within such calls, memory follows.
void settle_windows(Call call);
// On its exit.
void leave_windows();
// Is the present MPI call one that makes a window, in a library whose ranks watch memory?
bool makes_watched_window();

}  // namespace dryfly::preload
