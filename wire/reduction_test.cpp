#include "wire/reduction.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cfenv>
#include <cstring>
#include <limits>
#include <vector>

namespace dryfly::wire {

namespace {

constexpr std::uint8_t code(ReductionOp op) { return static_cast<std::uint8_t>(op); }

template <class T>
Contribution of(ReductionOp op, const std::vector<T>& values) {
  Contribution made;
  start_contribution(made, code(op), values.data(), values.size() * sizeof(T));
  return made;
}

template <class T>
std::vector<T> result_of(const Contribution& all, std::size_t count) {
  std::vector<T> values(count);
  finish(all, values.data(), count * sizeof(T));
  return values;
}

template <class T>
std::vector<T> together(ReductionOp op, const std::vector<T>& a, const std::vector<T>& b) {
  Contribution all = of(op, a);
  combine(all, of(op, b));
  return result_of<T>(all, a.size());
}

double reproducible(const std::vector<double>& values) {
  Contribution all{};
  for (const double value : values) combine(all, of<double>(ReductionOp::reproducible_sum, {value}));
  return result_of<double>(all, 1)[0];
}

}  // namespace

TEST_CASE("integers: sums, extremes and bits, four words at a time") {
  using Ints = std::vector<std::int64_t>;
  CHECK(together(ReductionOp::int_sum, Ints{1, -2, 3, 4}, Ints{10, 20, -30, 40}) == Ints{11, 18, -27, 44});
  CHECK(together(ReductionOp::int_min, Ints{1, -2, 3, 4}, Ints{0, 20, -30, 4}) == Ints{0, -2, -30, 4});
  CHECK(together(ReductionOp::int_max, Ints{1, -2, 3, 4}, Ints{0, 20, -30, 4}) == Ints{1, 20, 3, 4});
  using Bytes = std::vector<std::uint8_t>;
  CHECK(together(ReductionOp::bit_or, Bytes{1, 2, 0x80}, Bytes{1, 4, 1}) == Bytes{1, 6, 0x81});
  CHECK(together(ReductionOp::bit_and, Bytes{1, 6, 0x80}, Bytes{3, 4, 1}) == Bytes{1, 4, 0});
  CHECK(together(ReductionOp::bit_xor, Bytes{1, 6, 0x80}, Bytes{3, 4, 1}) == Bytes{2, 2, 0x81});
}

TEST_CASE("an integer sum that overflows says so, and so do contributions to different operations") {
  Contribution all = of<std::int64_t>(ReductionOp::int_sum, {std::numeric_limits<std::int64_t>::max()});
  combine(all, of<std::int64_t>(ReductionOp::int_sum, {1}));
  CHECK(ReductionStatus{all.status} == ReductionStatus::integer_overflow);
  combine(all, of<std::int64_t>(ReductionOp::int_max, {1}));
  CHECK(ReductionStatus{all.status} == ReductionStatus::op_mismatch);
  CHECK(all.count == 3);
}

TEST_CASE("a number comes before no number in the extremes of doubles") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  using Doubles = std::vector<double>;
  CHECK(together(ReductionOp::double_min, Doubles{none, 2, 3}, Doubles{1, none, 4}) == Doubles{1, 2, 3});
  CHECK(together(ReductionOp::double_max, Doubles{none, 2, 3}, Doubles{1, none, 4}) == Doubles{1, 2, 4});
}

TEST_CASE("extremes with places: of equal values the lowest place") {
  using Ints = std::vector<std::int64_t>;
  const Ints a{5, 7, 9, 7};  // least 5 and greatest 9, both at 7
  CHECK(together(ReductionOp::int_extremes, a, Ints{5, 3, 8, 3}) == Ints{5, 3, 9, 7});
  CHECK(together(ReductionOp::int_extremes, a, Ints{6, 3, 9, 3}) == Ints{5, 7, 9, 3});
}

TEST_CASE("a sum of doubles rounds as it is asked to") {
  const auto sum = [](int way) {
    const auto op = static_cast<std::uint8_t>(code(ReductionOp::double_sum) + way);
    const double values[] = {1.0, 0x1p-60};
    Contribution all;
    Contribution more;
    start_contribution(all, op, &values[0], sizeof(double));
    start_contribution(more, op, &values[1], sizeof(double));
    combine(all, more);
    return result_of<double>(all, 1)[0];
  };
  CHECK(sum(0) == 1.0);                      // to nearest
  CHECK(sum(2) == 1.0 + 0x1p-52);            // up
  CHECK(std::fegetround() == FE_TONEAREST);  // and only there
}

TEST_CASE("the reproducible sum is the same in every order, and exact where doubles are not") {
  std::vector<double> values{1e16, 1.0, -1e16, 3.5, 0x1p-30, -2.25, 1e10, 1e-5};
  std::sort(values.begin(), values.end());
  const double first = reproducible(values);
  do {
    CHECK(reproducible(values) == first);
  } while (std::next_permutation(values.begin(), values.begin() + 5));
  CHECK(reproducible({1e16, 1.0, -1e16}) == 1.0);
  CHECK(reproducible({0.1, 0.2, 0.3, -0.3, -0.2, -0.1}) == 0.0);
  CHECK(reproducible({5e-324}) == 5e-324);
  CHECK(reproducible({-1.5, 0.25}) == -1.25);
  CHECK(reproducible({std::numeric_limits<double>::max()}) == std::numeric_limits<double>::max());
}

}  // namespace dryfly::wire
