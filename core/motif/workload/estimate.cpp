#include "core/motif/workload/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "core/unit/check.hpp"

namespace dryfly::motif {

double students_t(double freedom) {
  return 1.96 + 2.4 / freedom + 2.8 / (freedom * freedom) + 5.6 / (freedom * freedom * freedom);
}

double spread_in_common(std::span<const float> first, std::span<const float> second) {
  DRYFLY_CHECK(first.size() == second.size());
  double count = 0;
  double first_sum = 0;
  double second_sum = 0;
  const auto visit_pairs = [&](const auto& visit) {
    for (std::size_t number = 0; number < first.size(); ++number) {
      if (first[number] > 0 && second[number] > 0) visit(double{first[number]}, double{second[number]});
    }
  };
  visit_pairs([&](double one, double other) {
    ++count;
    first_sum += one;
    second_sum += other;
  });
  if (count < 2) return 0;
  double first_squares = 0;
  double second_squares = 0;
  double products = 0;
  visit_pairs([&](double one, double other) {
    first_squares += (one - first_sum / count) * (one - first_sum / count);
    second_squares += (other - second_sum / count) * (other - second_sum / count);
    products += (one - first_sum / count) * (other - second_sum / count);
  });
  const double error = std::sqrt(first_squares * second_squares / count);
  return std::sqrt(std::max(0.0, products + 2 * error) / (count - 1));
}

Estimate Estimate::mean_of(std::span<const double> drawn) {
  DRYFLY_CHECK(drawn.size() >= 2);
  const auto count = static_cast<double>(drawn.size());
  Estimate mean;
  mean.value_ = std::accumulate(drawn.begin(), drawn.end(), 0.0) / count;
  double squares = 0;
  for (const double each : drawn) squares += (each - mean.value_) * (each - mean.value_);
  mean.variance_ = squares / (count - 1) / count;
  mean.by_freedom_ = mean.variance_ * mean.variance_ / (count - 1);
  mean.drawn_ = count;
  return mean;
}

Estimate Estimate::spread_like_this(double value) const {
  Estimate one = *this * (value_ > 0 ? value / value_ : 0);
  one.value_ = value;
  one.variance_ *= drawn_;
  one.by_freedom_ *= drawn_ * drawn_;
  one.drawn_ = 1;
  return one;
}

Estimate Estimate::operator+(const Estimate& other) const {
  Estimate sum;
  sum.value_ = value_ + other.value_;
  sum.variance_ = variance_ + other.variance_;
  sum.by_freedom_ = by_freedom_ + other.by_freedom_;
  return sum;
}

Estimate Estimate::operator*(double times) const {
  Estimate product = *this;
  product.value_ *= times;
  product.variance_ *= times * times;
  product.by_freedom_ *= times * times * times * times;
  return product;
}

double Estimate::bound() const {
  if (variance_ <= 0) return 0;
  return students_t(variance_ * variance_ / by_freedom_) * std::sqrt(variance_);
}

}  // namespace dryfly::motif
