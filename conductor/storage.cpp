// Traffic to and from storage groups beside the job (core/storage). It never comes to rest by itself, so what the
// conductor otherwise learns from an empty event queue, that a job in which every rank waits has nothing under way, it
// learns here by counting what is the job's: transfers, and events of NICs and commands.
#include <algorithm>

#include "conductor/conductor.hpp"
#include "core/nic/nic_spec.hpp"
#include "core/record/json_writer.hpp"

namespace dryfly {

std::unique_ptr<storage::StorageTraffic> Conductor::storage_of(const Spec& spec) {
  if (!storage::Plan::any_in(spec)) return nullptr;
  return std::make_unique<storage::StorageTraffic>(engine_, network_, storage::Plan::read(spec, topology_),
                                                   nic_spec(spec).framing);
}

bool Conductor::nothing_under_way() {
  if (!storage_) return engine_.next() == never;
  return storage_->network().job_transfers() == 0 && nics_.events_pending() == 0 && translator_.events_pending() == 0;
}

// Grows with everything that happens for the job.
std::uint64_t Conductor::events_of_job() const {
  if (!storage_) return engine_.events_run();
  return storage_->network().job_submissions() + nics_.events_scheduled() + translator_.events_scheduled();
}

// How far the engine may run when every rank waits for an event: with other traffic, no further than the job needs, and
// to an instant that does not depend on when this was asked.
Instant Conductor::limit_of_waiting() {
  if (!storage_ || !started_ || ended_) return never;
  if (nothing_under_way()) {
    std::uint64_t latest = 0;
    for (const Rank& rank : ranks_) latest = std::max(latest, rank.gate_at_ps);
    return Instant{latest + lookahead_ps()};
  }
  if (storage_->network().job_transfers() == 0) return engine_.next() + Duration{1};
  storage_->network().stop_without_job(true);
  return never;
}

void Conductor::write_storage(JsonWriter& json) const {
  if (!storage_) return;
  json.key("storage");
  json.begin_array();
  for (const storage::StreamTotals& totals : storage_->totals()) {
    json.begin_object();
    json.member("operations", totals.exchanges);
    json.member("bytes", totals.bytes);
    json.member("operations_failed", totals.failed);
    json.member("latency_sum_ps", totals.latency_sum.ps);
    json.member("latency_max_ps", totals.latency_max.ps);
    json.end_object();
  }
  json.end_array();
}

// Of the job's NICs, which count time-outs, and what goes to storage as the hardware does, whoever it is for.
std::vector<NicCounters> Conductor::counters_of_nics() const {
  std::vector<NicCounters> nics = nics_.counters();
  const std::map<NicId, NicTimeouts> timeouts = network_.timeouts_by_nic();
  for (NicCounters& counters : nics) {
    if (const auto found = timeouts.find(counters.nic); found != timeouts.end()) {
      for (const Counter counter : {Counter::pct_sct_timeouts, Counter::rh_sct_timeouts}) {
        counters.add(counter, found->second.ordered);
      }
      for (const Counter counter : {Counter::pct_spt_timeouts, Counter::rh_spt_timeouts}) {
        counters.add(counter, found->second.unordered);
      }
    }
    if (!storage_) continue;
    const auto also = storage_->counters().find(counters.nic);
    if (also == storage_->counters().end()) continue;
    for (std::size_t place = 0; place < counter_count; ++place) counters.values[place] += also->second.values[place];
  }
  return nics;
}

}  // namespace dryfly
