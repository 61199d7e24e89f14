#include <vector>

#include "core/motif/goal/schedules.hpp"
#include "core/motif/schedule/balance.hpp"
#include "core/spec/spec.hpp"

namespace dryfly::motif::goal {
namespace {

[[noreturn]] void fail(const std::string& file_name, std::uint32_t rank, const Step& step, const std::string& what) {
  throw SpecError(file_name + ", line " + std::to_string(step.line) + ", rank " + std::to_string(rank) + ": " + what);
}

std::string as_text(const Step& step) {
  const std::string tag = step.tag == any_tag ? "any tag" : "tag " + std::to_string(step.tag);
  const std::string peer = step.peer == any_rank ? "any rank" : "rank " + std::to_string(step.peer);
  return (step.kind == StepKind::send ? "the send to " : "the receive from ") + peer + " with " + tag;
}

// Takes away what waits for nothing until there is no more of it.
class Circles {
 public:
  explicit Circles(const Schedules& schedules) : schedules_(schedules) {}

  // no_step: none.
  std::uint32_t one_of(const Range& range) {
    waiting_.clear();
    free_.clear();
    for (std::uint32_t step = range.first; step < range.last; ++step) {
      waiting_.push_back(schedules_.steps[step].waiting);
      if (waiting_.back() == 0) free_.push_back(step);
    }
    std::uint32_t left = range.last - range.first;
    while (!free_.empty()) {
      const std::uint32_t step = free_.back();
      free_.pop_back();
      --left;
      for (std::uint32_t at = schedules_.steps[step].followers; at < schedules_.steps[step + 1].followers; ++at) {
        const std::uint32_t follower = schedules_.followers[at].step();
        if (--waiting_[follower - range.first] == 0) free_.push_back(follower);
      }
    }
    return left == 0 ? no_step : on_circle(range);
  }

 private:
  // What is left may be behind a circle only; whoever goes back from step to step comes to one. A step before each
  // is found by looking through the lists once.
  std::uint32_t on_circle(const Range& range) const {
    std::vector<std::uint32_t> before(range.last - range.first, no_step);
    std::uint32_t at = no_step;
    for (std::uint32_t step = range.first; step < range.last; ++step) {
      if (waiting_[step - range.first] == 0) continue;
      at = step;
      for (std::uint32_t next = schedules_.steps[step].followers; next < schedules_.steps[step + 1].followers; ++next) {
        before[schedules_.followers[next].step() - range.first] = step;
      }
    }
    for (std::uint32_t steps = range.first; steps < range.last; ++steps) at = before[at - range.first];
    std::uint32_t first = at;
    for (std::uint32_t other = before[at - range.first]; other != at; other = before[other - range.first]) {
      first = std::min(first, other);
    }
    return first;
  }

  const Schedules& schedules_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> free_;
};

void each_exchange(const Schedules& schedules, const std::function<void(const Exchange&)>& visit) {
  for (std::uint32_t rank = 0; rank < schedules.count(); ++rank) {
    for (std::uint32_t index = schedules.ranks[rank].first; index < schedules.ranks[rank].last; ++index) {
      const Step& step = schedules.steps[index];
      if (step.kind == StepKind::calc) continue;
      const bool sends = step.kind == StepKind::send;
      visit({.source = sends ? rank : step.peer,
             .target = sends ? step.peer : rank,
             .tag = step.tag,
             .sends = sends,
             .step = index});
    }
  }
}

}  // namespace

void check(const std::string& file_name, const Schedules& schedules) {
  Circles circles(schedules);
  for (std::uint32_t rank = 0; rank < schedules.count(); ++rank) {
    const std::uint32_t step = circles.one_of(schedules.ranks[rank]);
    if (step != no_step) fail(file_name, rank, schedules.steps[step], "this step waits, over others, for itself");
  }
  const auto unmatched = find_unmatched(schedules.count(), [&](const auto& visit) { each_exchange(schedules, visit); });
  if (!unmatched) return;
  const Step& step = schedules.steps[unmatched->exchange.step];
  const std::uint32_t rank = unmatched->exchange.sends ? unmatched->exchange.source : unmatched->exchange.target;
  fail(file_name, rank, step, as_text(step) + " " + unmatched->why);
}

}  // namespace dryfly::motif::goal
