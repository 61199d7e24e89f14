#include "generator.hpp"

namespace dryfly::hpl {
namespace {

// n steps at once: X -> multiplier X + increment.
struct Jump {
  std::uint64_t multiplier = 1;
  std::uint64_t increment = 0;

  std::uint64_t from(std::uint64_t state) const { return multiplier * state + increment; }
};

Jump jump(std::uint64_t multiplier, std::uint64_t increment, std::uint64_t steps) {
  Jump total;
  for (; steps != 0; steps >>= 1) {
    if (steps & 1) total = {total.multiplier * multiplier, total.increment * multiplier + increment};
    increment += multiplier * increment;
    multiplier *= multiplier;
  }
  return total;
}

}  // namespace

std::uint64_t Generator::state_at(std::uint64_t index) const {
  return jump(kMultiplier, kIncrement, index + 1).from(seed_);
}

void Generator::fill(std::uint64_t index, std::int64_t count, double* target) const {
  // Eight interleaved sequences, because one alone would wait for each of its multiplications.
  constexpr int kLanes = 8;
  static const Jump kAhead = jump(kMultiplier, kIncrement, kLanes);
  std::uint64_t state[kLanes];
  state[0] = state_at(index);
  for (int lane = 1; lane < kLanes; ++lane) state[lane] = kMultiplier * state[lane - 1] + kIncrement;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      target[i + lane] = value(state[lane]);
      state[lane] = kAhead.from(state[lane]);
    }
  for (int lane = 0; i < count; ++i, ++lane) target[i] = value(state[lane]);
}

}  // namespace dryfly::hpl
