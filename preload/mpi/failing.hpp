// A rank that is about to end the job, by a wrong call of MPI's or by MPI_Abort. All ranks may come to that at once;
// the first of them in virtual time goes on and says why, and the others stay where they are until they are ended with
// the job. Left out: errors that MPICH finds itself, which it has printed before anybody can know of them.
#pragma once

#include "preload/clock/ledger.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

// Comes back in the first one, and everywhere outside a run's virtual time.
inline void come_to_fail() {
  const bool is_in_virtual_time = phase() == Phase::running && on_main_thread() && !others_may_call() &&
                                  dryfly_self.mode() != rank::CallMode::outside;
  if (is_in_virtual_time && !on_served_fabric()) dryfly_self.gate(wire::GateKind::fail);
}

}  // namespace dryfly::preload
