#include "core/motif/job/porter.hpp"

#include <algorithm>

namespace dryfly::motif {

Porter::Porter(Carriage& carriage) : carriage_(carriage), places_(places), thread_([this] { work(); }) {}

Porter::~Porter() {
  said_.raise(over);
  thread_.join();
}

void Porter::work() {
  std::uint64_t at = 0;
  for (;;) {
    said_.wait_for(at + 1);
    const std::uint64_t until = said_.count();
    if (until == over) return;
    const std::uint64_t first_until = std::min(until, at + batch);
    for (; at < first_until; ++at) {
      if (at + ahead < until) carriage_.prefetch(places_[(at + ahead) & mask].load);
      Place& place = places_[at & mask];
      place.times = carriage_.bring(place.load);
    }
    brought_.raise(at);
  }
}

}  // namespace dryfly::motif
