// Room 8 of the message's way: events of the simulator that are visible at the rank's instant become entries of
// completion queues and counts of counters, and payloads get to their buffers.
#pragma once

#include "provider/process.hpp"

namespace dryfly::provider {

// Takes all that is visible. True if anything was reported.
bool progress(const Session& session);

// A poll has found nothing (`reported`: to its own queue). Costs one poll and, unless something was reported
// elsewhere, may let virtual time pass; takes what is visible then.
void empty_poll(const Session& session, bool reported);

}  // namespace dryfly::provider
