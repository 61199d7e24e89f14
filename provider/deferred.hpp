// Deferred work: operations that are queued now and issued when a counter reaches a threshold (fi_trigger(3),
// FI_QUEUE_WORK on a domain), as the machine's provider offers them. The machine's NIC issues them by itself; here it
// is the rank that does, in the call that sees the counter, and it pays for the call. Left out: receives (as there) and
// FI_TRIGGER as a flag of single calls.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_trigger.h>

#include <cstdint>

namespace dryfly::provider {

struct Counter;
struct Domain;
struct Endpoint;
struct Process;
struct Deferred;  // one piece of work

// FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK of a domain.
int control_work(Domain& domain, int what, void* argument);
// Issues what is due. To be called without a Session.
void issue_deferred();
// Whether a counter has reached the threshold of some work that is not issued yet.
bool work_is_due(const Process& state);
// The counter that the operation being issued is to be counted by, in the place of its end-point's; nullptr: none.
Counter* counter_of_work();
// Whether the operation being issued is a deferred one.
bool issues_work();

}  // namespace dryfly::provider
