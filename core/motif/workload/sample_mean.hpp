// The mean of the parts of a sample, and how far it may be from that of the whole.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dryfly::motif {

class SampleMean {
 public:
  void add(double value) {
    ++count_;
    sum_ += value;
    squares_ += value * value;
  }
  double mean() const { return sum_ / static_cast<double>(count_); }
  // Of the mean, of two parts and more.
  double standard_error() const {
    const auto count = static_cast<double>(count_);
    const double variance = std::max(0.0, squares_ / count - mean() * mean()) * count / (count - 1);
    return std::sqrt(variance / count);
  }

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace dryfly::motif
