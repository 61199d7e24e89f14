// What the NIC asks of the provider's software: to take over unexpected headers, to count drops, to issue the Get of a
// rendezvous that software has matched. It is done when the program polls the end-point's completion queue and comes
// to it there, like the progress of the real provider; so an idle CPU helps nobody. In the queue such work stands among
// the completions, one a read, so that the instant at which it is done does not depend on how far the simulator is.
#pragma once

#include "provider/cq.hpp"
#include "provider/process.hpp"

namespace dryfly::provider {

// An event `work`, or a head to be copied to a device: into the queue it is for, or done at once where there is none.
// True if it is in a queue.
bool accept_work(const Session& session, const wire::Event& event);
// Its turn has come.
void do_work(const Session& session, const Completion& work);

}  // namespace dryfly::provider
