// The wait object of a completion queue: a descriptor for poll(), on a served fabric (dryfly serve). In a run there is
// none, because a rank that sleeps outside the provider would leave virtual time at an instant that the host decides.
// All wait objects of a process are one descriptor, duplicated for each, so that it may wake for what has come to
// another queue; fi_trywait before each sleep is what libfabric asks for, and here it takes the process out of virtual
// time at once. What is refused, and how, is as in libfabric's cxi provider (cxip_cq.c, cxip_cntr.c, cxip_eq.c,
// cxip_trywait): counters and event queues have no descriptor, and nothing of FI_WAIT_NONE can be waited for.
#pragma once

#include <rdma/fi_eq.h>

#include "provider/fabric.hpp"

namespace dryfly::provider {

struct WaitObject {
  fi_wait_obj kind;
  int descriptor;  // FI_WAIT_FD, FI_WAIT_POLLFD
};

// What fi_cq_open is asked for; FI_WAIT_UNSPEC becomes FI_WAIT_FD where there are descriptors. 0 or an error.
int open_wait_object(fi_wait_obj asked, WaitObject& made);
void close_wait_object(const WaitObject& object);
// fi_control on the queue: FI_GETWAIT and FI_GETWAITOBJ.
int control_wait_object(const WaitObject& object, int command, void* argument);

// fi_trywait: 0 when the program may sleep on the descriptors of these, -FI_EAGAIN when it has to look at them first.
int try_wait(fid_fabric* fabric, fid** objects, int count);

}  // namespace dryfly::provider
