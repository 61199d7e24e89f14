// Deferred work: operations that are queued now and issued when a counter reaches a threshold (fi_trigger(3),
// FI_QUEUE_WORK on a domain), as the machine's provider offers them. The NIC has them from then on: it moves the
// counters and issues what is due by itself (conductor/triggers.hpp), whatever its rank does meanwhile. Left out:
// receives (as there) and FI_TRIGGER as a flag of single calls.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "provider/operation.hpp"
#include "wire/wire.hpp"

namespace dryfly::provider {

struct Counter;
struct Domain;
struct Endpoint;
struct Deferred;  // one piece of work

// FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK of a domain.
int control_work(Domain& domain, int what, void* argument);
// The counter that the operation being issued is to be counted by, in the place of its end-point's; nullptr: none.
Counter* counter_of_work();
// Whether the operation being issued is a deferred one.
bool issues_work();
// It is: its command waits for the counter, and its payload stays in memory until then.
void defer(Operation& operation, wire::Command& command);
// An operation that was deferred is over.
void settle_work(Deferred& work);
// The end-point closes, and its work with it.
void forget_work(const Endpoint& endpoint);

}  // namespace dryfly::provider
