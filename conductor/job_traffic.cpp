#include "conductor/job_traffic.hpp"

#include <algorithm>

namespace dryfly {

bool JobTraffic::nothing_under_way() const {
  if (storage_ == nullptr) return engine_.next() == never;
  return storage_->network().under_way() == 0 && nics_.events_pending() == 0 && translator_.events_pending() == 0;
}

bool JobTraffic::only_peeks_under_way() const {
  if (!translator_.holds_only_peeks()) return false;
  if (storage_ == nullptr) return engine_.events_pending() == translator_.events_pending();
  return storage_->network().under_way() == 0 && nics_.events_pending() == 0;
}

std::uint64_t JobTraffic::events() const {
  if (storage_ == nullptr) return engine_.events_run();
  return storage_->network().submissions() + nics_.events_scheduled() + translator_.events_scheduled();
}

Instant JobTraffic::limit_of_waiting(const Clock& clock, const std::vector<Rank>& ranks) {
  if (storage_ == nullptr || !clock.runs()) return never;
  if (nothing_under_way()) {
    std::uint64_t latest = 0;
    for (const Rank& rank : ranks) latest = std::max(latest, rank.gate.at_ps);
    return Instant{latest + clock.lookahead_ps()};
  }
  if (storage_->network().under_way() == 0) return engine_.next() + Duration{1};
  storage_->network().stop_engine_when_idle(true);
  return never;
}

Instant JobTraffic::end_of(const Clock& clock, const std::vector<Rank>& ranks) {
  std::uint64_t latest = 0;
  for (const Rank& rank : ranks) latest = std::max(latest, rank.gate.end_ps);
  return Instant{latest + clock.lookahead_ps()};
}

}  // namespace dryfly
