// Traffic to and from storage groups beside the job (core/storage). It never comes to rest by itself, so what the
// conductor otherwise learns from an empty event queue, that a job in which every rank waits has nothing under way, it
// learns here by counting what is the job's: transfers, and events of NICs and commands.
#include <algorithm>

#include "conductor/conductor.hpp"
#include "core/nic/nic_spec.hpp"

namespace dryfly {

std::unique_ptr<storage::StorageTraffic> Conductor::storage_of(const Spec& spec) {
  if (!storage::Plan::any_in(spec)) return nullptr;
  return std::make_unique<storage::StorageTraffic>(engine_, network_, storage::Plan::read(spec, topology_),
                                                   nic_spec(spec).framing);
}

bool Conductor::nothing_under_way() {
  if (!storage_) return engine_.next() == never;
  return storage_->network().under_way() == 0 && nics_.events_pending() == 0 && translator_.events_pending() == 0;
}

// Grows with everything that happens for the job.
std::uint64_t Conductor::events_of_job() const {
  if (!storage_) return engine_.events_run();
  return storage_->network().submissions() + nics_.events_scheduled() + translator_.events_scheduled();
}

// How far the engine may run when every rank waits for an event: with other traffic, no further than the job needs, and
// to an instant that does not depend on when this was asked.
Instant Conductor::limit_of_waiting() {
  if (!storage_ || !started_ || ended_) return never;
  if (nothing_under_way()) {
    std::uint64_t latest = 0;
    for (const Rank& rank : ranks_) latest = std::max(latest, rank.gate.at_ps);
    return Instant{latest + lookahead_ps()};
  }
  if (storage_->network().under_way() == 0) return engine_.next() + Duration{1};
  storage_->network().stop_engine_when_idle(true);
  return never;
}

}  // namespace dryfly
