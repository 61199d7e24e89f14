// Wait objects: a descriptor for poll(), on a served fabric (dryfly serve). In a run there is none, because a rank that
// sleeps outside the provider would leave virtual time at an instant that the host decides. All wait objects of a
// process are one descriptor, duplicated for each, so that it may wake for what has come to another queue; fi_trywait
// before each sleep is what libfabric asks for, and here it takes the process out of virtual time at once.
// Left out: FI_WAIT_SET, FI_WAIT_MUTEX_COND, and that fi_cq_signal wakes a sleeper in poll().
#pragma once

#include <rdma/fi_eq.h>

#include "provider/fabric.hpp"

namespace dryfly::provider {

struct WaitObject {
  fi_wait_obj kind;
  int descriptor;  // FI_WAIT_FD, FI_WAIT_POLLFD
};

// What fi_cq_open and fi_cntr_open are asked for. 0 or an error.
int open_wait_object(fi_wait_obj asked, WaitObject& made);
void close_wait_object(const WaitObject& object);
// fi_control on the queue: FI_GETWAIT and FI_GETWAITOBJ.
int control_wait_object(const WaitObject& object, int command, void* argument);

// fi_trywait: 0 when the program may sleep on the descriptors of these, -FI_EAGAIN when it has to look at them first.
int try_wait(fid_fabric* fabric, fid** objects, int count);

}  // namespace dryfly::provider
