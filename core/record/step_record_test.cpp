#include "core/record/step_record.hpp"

#include <doctest/doctest.h>

namespace dryfly {
namespace {

constexpr std::uint64_t us = 1'000'000;

std::uint64_t sum_of(const StepRecord& record, std::uint64_t key) {
  std::uint64_t sum = 0;
  for (const auto& step : record.steps()) {
    for (const StepRecord::Growth& growth : step) sum += growth.key == key ? growth.by : 0;
  }
  return sum;
}

TEST_CASE("what has grown belongs to the step that was open, and idle steps are empty") {
  StepRecord record(Instant{7 * us});
  CHECK(record.step_end() == Instant{8 * us});
  record.close_step({{3, 10}});
  CHECK(record.step_end() == Instant{9 * us});
  record.close_step({{1, 5}, {3, 1}});
  while (record.step_end() <= Instant{12 * us + 1}) record.close_step({});
  record.add({{3, 2}});
  REQUIRE(record.steps().size() == 6);
  CHECK(record.steps()[0][0].by == 10);
  CHECK(record.steps()[1].size() == 2);
  CHECK(record.steps()[2].empty());
  CHECK(record.steps()[5][0].by == 2);
  CHECK(sum_of(record, 3) == 13);
}

TEST_CASE("steps double when the run outgrows them, and nothing of what was counted is lost") {
  StepRecord record(Instant{0});
  std::uint64_t steps = 0;
  while (record.step_end() < Instant{5000 * us}) {
    record.make_room(record.step_end());
    record.close_step({{steps % 3, 1}, {10, 2}});
    ++steps;
  }
  // 512 steps of 1 us, then 256 each of 2, 4 and 8 us, and so many of 16 us that end before 5,000 us.
  CHECK(record.step_ps() == 16 * us);
  CHECK(record.steps().size() <= StepRecord::most_steps);
  CHECK(sum_of(record, 0) + sum_of(record, 1) + sum_of(record, 2) == steps);
  CHECK(sum_of(record, 10) == 2 * steps);
  // A jump of a second in one go.
  record.make_room(Instant{1'000'000 * us});
  record.close_step({{4, 9}});
  while (record.step_end() <= Instant{1'000'000 * us}) record.close_step({});
  CHECK(sum_of(record, 4) == 9);
  CHECK(record.steps().size() <= StepRecord::most_steps);
  CHECK(record.steps().back().empty());
}

}  // namespace
}  // namespace dryfly
