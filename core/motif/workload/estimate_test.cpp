#include "core/motif/workload/estimate.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

TEST_CASE("the bound of a mean is Student's t of its standard error") {
  // A variance of 20/3 of each of four, 5/3 of their mean; 3.182 standard errors with three degrees of freedom.
  const Estimate mean = Estimate::mean_of(std::array{7.0, 9.0, 11.0, 13.0});
  CHECK(mean.value() == doctest::Approx(10));
  CHECK(mean.bound() == doctest::Approx(3.182 * std::sqrt(5.0 / 3)).epsilon(0.04));
  CHECK((mean * 3).value() == doctest::Approx(30));
  CHECK((mean * 3).bound() == doctest::Approx(3 * mean.bound()));
}

TEST_CASE("what was run once is spread as what it is like, as a share") {
  // One of two: a standard error of 2 and of 1/5, so a standard deviation of 2 * sqrt(2) and of sqrt(2) / 5.
  const Estimate mean = Estimate::mean_of(std::array{8.0, 12.0});
  const Estimate other = mean.spread_like_this(20);
  CHECK(other.value() == doctest::Approx(20));
  CHECK(other.bound() == doctest::Approx(2 * std::sqrt(2.0) * mean.bound()));
  CHECK(Estimate::mean_of(std::array{0.0, 0.0}).spread_like_this(5).bound() == 0);
}

TEST_CASE("what two draws of each have in common is told from what they have by chance") {
  // By chance each differs by 3 and, of half of them, another 1 for good: a covariance of 1, of variances of 10.
  const RandomStream draws(1, 0, Purpose::test);
  constexpr std::size_t many = 10'000;
  const auto drawn = [&](std::uint64_t from, float lasting) {
    std::vector<float> each(many);
    for (std::size_t number = 0; number < many; ++number) {
      each[number] = 10 + (draws.below(from + number, 2) == 1 ? 3.0F : -3.0F) + (number % 2 == 1 ? lasting : -lasting);
    }
    return each;
  };
  // Two standard errors of the covariance are 2 * 10 / 100, or 2 * 9 / 100 without what lasts; it errs by one or two.
  const double in_common = spread_in_common(drawn(0, 1), drawn(many, 1));
  CHECK(in_common >= std::sqrt(1.0));
  CHECK(in_common <= std::sqrt(1.4));
  CHECK(spread_in_common(drawn(0, 0), drawn(many, 0)) <= std::sqrt(0.36));
  CHECK(spread_in_common(drawn(0, 1), drawn(0, 1)) >= std::sqrt(10.0));
  CHECK(spread_in_common(std::vector<float>{1, 0, 5}, std::vector<float>{0, 1, 5}) == 0);
}

TEST_CASE("19 of 20 sums of means are within their bound") {
  const RandomStream draws(1, 0, Purpose::test);
  std::uint64_t drawn = 0;
  const auto value = [&] { return draws.below(drawn++, 1001) / 1000.0; };  // 0.5 on average
  int within = 0;
  constexpr int samples = 2000;
  for (int sample = 0; sample < samples; ++sample) {
    const Estimate four = Estimate::mean_of(std::array{value(), value(), value(), value()}) * 10;
    const Estimate three = Estimate::mean_of(std::array{value(), value(), value()}) * 2;
    const Estimate sum = four + three;
    within += std::abs(sum.value() - 6) <= sum.bound() ? 1 : 0;
  }
  // 1,900 with a standard deviation of 10; and the formula's t is a little large.
  CHECK(within >= 1870);
  CHECK(within <= 1960);
}

}  // namespace
}  // namespace dryfly::motif
