// Room 8 of the message's way: events of the simulator that are visible at the rank's instant become entries of
// completion queues and counts of counters, and payloads get to their buffers.
#pragma once

#include "provider/process.hpp"

namespace dryfly::provider {

// Takes what is visible and has come. True if anything was reported.
bool progress(const Session& session);

// Takes all that is visible at this instant, waiting for the simulator where it is behind.
void take_all_visible(const Session& session);

// A poll has found nothing (`reported`: to its own queue). Costs one poll and, unless something was reported
// elsewhere, may let virtual time pass; takes what has come then. True: more may be visible.
bool empty_poll(const Session& session, bool reported);

// A look at a queue: `has_something` says whether there is an entry in it. What the program is told must not depend on
// how far the simulator happens to be. Entries come in the order of their instants, so where there is one, that is
// certain; where there is none, and something was reported elsewhere, the rest has to be waited for.
template <class HasSomething>
void look(const Session& session, HasSomething has_something) {
  const bool reported = progress(session);
  if (has_something()) return;
  const bool more = empty_poll(session, reported);
  if (more && !has_something()) take_all_visible(session);
}

}  // namespace dryfly::provider
