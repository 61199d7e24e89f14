// A time of which a sample was run, and how far off it may be. Parts of which several were run have the variance of
// their mean; of independent parts that are added up, variances add up, and so do degrees of freedom, as Welch and
// Satterthwaite add them. The error is within bound() 19 times of 20 where what was run was drawn at random.
#pragma once

#include <span>

namespace dryfly::motif {

// 19 of 20 values are nearer to the mean than so many standard errors, within 6 %, and for no number of degrees of
// freedom less.
double students_t(double freedom);

// Of what two draws of each have in common, the standard deviation, at most: of their covariance two standard errors
// more. Where either draw is 0 there was none.
double spread_in_common(std::span<const float> first, std::span<const float> second);

class Estimate {
 public:
  Estimate() = default;
  // What all have that these were drawn from, at least two of them.
  static Estimate mean_of(std::span<const double> drawn);
  // Of something like it that was run once: it is taken to be spread as much, as a share.
  Estimate spread_like_this(double value) const;

  Estimate operator+(const Estimate& other) const;
  Estimate operator*(double times) const;

  double value() const { return value_; }
  double bound() const;  // in the value's unit

 private:
  double value_ = 0;
  double variance_ = 0;
  double by_freedom_ = 0;  // squares of variances, each divided by its degrees of freedom
  double drawn_ = 1;       // how many the mean is of
};

}  // namespace dryfly::motif
