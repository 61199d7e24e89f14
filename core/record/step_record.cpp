#include "core/record/step_record.hpp"

#include <utility>

namespace dryfly {

void StepRecord::add(const std::vector<Growth>& grown) { steps_.back() = sum(steps_.back(), grown); }

void StepRecord::close_step(const std::vector<Growth>& grown) {
  DRYFLY_CHECK(steps_.size() < most_steps);
  add(grown);
  steps_.emplace_back();
}

void StepRecord::make_room(Instant now) {
  while ((now - start_).ps / step_ps_ >= most_steps) double_steps();
}

void StepRecord::double_steps() {
  step_ps_ *= 2;
  for (std::size_t place = 0; place < steps_.size(); place += 2) {
    std::vector<Growth> both = place + 1 < steps_.size() ? sum(steps_[place], steps_[place + 1]) : steps_[place];
    steps_[place / 2] = std::move(both);
  }
  steps_.resize((steps_.size() + 1) / 2);
}

std::vector<StepRecord::Growth> StepRecord::sum(const std::vector<Growth>& a, const std::vector<Growth>& b) {
  std::vector<Growth> both;
  both.reserve(a.size() + b.size());
  auto next = b.begin();
  for (const Growth& growth : a) {
    for (; next != b.end() && next->key < growth.key; ++next) both.push_back(*next);
    both.push_back(growth);
    if (next != b.end() && next->key == growth.key) both.back().by += (next++)->by;
  }
  both.insert(both.end(), next, b.end());
  return both;
}

}  // namespace dryfly
