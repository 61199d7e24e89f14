// SIGKILL cannot be caught, so the supervisor has a guard: its parent, which does nothing but wait. Each looks after
// the other's end. If the supervisor is killed, its ranks die with it (PR_SET_PDEATHSIG) and what they have started
// falls to the guard, the next subreaper, which kills it. If the guard is killed, the supervisor gets SIGTERM and
// ends the job as for any SIGTERM.
#pragma once

#include <functional>

#include "launch/signals.hpp"

namespace dryfly::launch {

// Runs `supervisor` in a child and returns what it returned; 128 + signal if it was killed, in which case
// `report_loss` is called once everything is cleaned up. Passes the answered signals on.
int guarded(const Signals& signals, const std::function<int()>& supervisor,
            const std::function<void(int signal_number)>& report_loss);

}  // namespace dryfly::launch
