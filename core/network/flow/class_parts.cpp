#include "core/network/flow/class_parts.hpp"

#include <algorithm>

namespace dryfly::flow {
namespace {

struct Problem {
  const fabric::QosProfile& profile;
  const OfClasses& wanted;
  bool at_nic;
};

// Those of one priority, by their shares.
void divide_among(const Problem& problem, std::uint32_t classes, double capacity, OfClasses& parts) {
  const auto weight_of = [&](std::uint32_t index) { return weight(problem.profile, index, problem.at_nic); };
  while (classes != 0) {
    double weights = 0;
    each_class(classes, [&](std::uint32_t index) { weights += weight_of(index); });
    std::uint32_t content = 0;  // those who want less than they could have
    each_class(classes, [&](std::uint32_t index) {
      if (problem.wanted[index] * weights <= capacity * weight_of(index)) content |= 1U << index;
    });
    const std::uint32_t settled = content != 0 ? content : classes;
    const double whole = capacity;
    each_class(settled, [&](std::uint32_t index) {
      parts[index] = content != 0 ? problem.wanted[index] : whole * weight_of(index) / weights;
      capacity -= std::min(capacity, parts[index]);
    });
    classes &= ~settled;
  }
}

}  // namespace

double weight(const fabric::QosProfile& profile, std::uint32_t traffic_class, bool at_nic) {
  const fabric::ClassShares& shares = profile.classes[traffic_class];
  return static_cast<double>(std::max(1U, at_nic ? shares.assured_ppm : shares.fabric_ppm));
}

OfClasses parts_of(const fabric::QosProfile& profile, std::uint32_t classes, double capacity, const OfClasses& wanted,
                   bool at_nic) {
  OfClasses parts{};
  double sum = 0;
  each_class(classes, [&](std::uint32_t index) { sum += wanted[index]; });
  each_class(classes, [&](std::uint32_t index) { parts[index] = capacity * ceiling(profile, index); });
  if (sum <= capacity) return parts;
  double left = capacity;
  std::uint32_t todo = classes;
  while (todo != 0) {
    std::uint32_t highest = 0;
    each_class(todo, [&](std::uint32_t index) { highest = std::max(highest, profile.classes[index].priority); });
    std::uint32_t equals = 0;
    each_class(todo, [&](std::uint32_t index) {
      if (profile.classes[index].priority == highest) equals |= 1U << index;
    });
    divide_among({profile, wanted, at_nic}, equals, left, parts);
    each_class(equals, [&](std::uint32_t index) { left -= std::min(left, parts[index]); });
    todo &= ~equals;
  }
  return parts;
}

}  // namespace dryfly::flow
