#include "conductor/gathering.hpp"

#include <algorithm>

namespace dryfly {

void Gathering::sleeps_beside(std::uint32_t busy) {
  if (busy > 1) {
    alone_ -= std::min(alone_, crowd_weight);
    if (alone_ == 0) disperse();
    return;
  }
  if (alone_ < begin_at && ++alone_ < begin_at) return;
  if (!is_on_) gather();
}

void Gathering::gather() {
  const int here = sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  if (here < 0 || sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
  CPU_SET(here, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return;
  is_on_ = true;
  header_.gathering_processor.store(static_cast<std::uint32_t>(here) + 1, std::memory_order_relaxed);
}

void Gathering::disperse() {
  if (!is_on_) return;
  is_on_ = false;
  header_.gathering_processor.store(0, std::memory_order_relaxed);
  sched_setaffinity(0, sizeof allowed_, &allowed_);
}

}  // namespace dryfly
