// Ends every process that descends from this one, whatever groups and sessions they have moved to. The caller has to
// be a child subreaper (PR_SET_CHILD_SUBREAPER): a descendant whose parent ends becomes our child, so "no child is
// left" means "no descendant is left".
#pragma once

#include <chrono>

namespace dryfly::launch {

// SIGTERM, after `grace` SIGKILL, until none is left. False if some survived SIGKILL for `limit`, which only a
// process stuck in the kernel does. Needs SIGCHLD blocked and not ignored.
bool end_all_descendants(std::chrono::milliseconds grace, std::chrono::milliseconds limit);

// Is one on a processor, or waiting for one only?
bool any_descendant_runs();

}  // namespace dryfly::launch
