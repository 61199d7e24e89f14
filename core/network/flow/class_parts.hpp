// What each traffic class may have of a pipe that several want, as the arbiters of the packet model divide a link
// (core/network/fabric/qos.hpp): none has more than its ceiling, those of higher priority come first, and of the others
// each has what it wants or its share, whichever is less; what a class leaves is the others'.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/network/fabric/qos.hpp"

namespace dryfly::flow {

using OfClasses = std::array<double, fabric::most_classes>;

template <class Visit>
void each_class(std::uint32_t classes, Visit visit) {
  for (; classes != 0; classes &= classes - 1) visit(static_cast<std::uint32_t>(std::countr_zero(classes)));
}

inline double ceiling(const fabric::QosProfile& profile, std::uint32_t traffic_class) {
  return profile.classes[traffic_class].ceiling_ppm / static_cast<double>(fabric::whole_ppm);
}

// What counts for a class against others of its priority: where a NIC sends what is assured to it, elsewhere its share
// of the fabric.
double weight(const fabric::QosProfile& profile, std::uint32_t traffic_class, bool at_nic);

// Of `classes` (bits), of which each wants so much and no more than its ceiling. Where they do not want more than there
// is, all may have up to their ceilings.
OfClasses parts_of(const fabric::QosProfile& profile, std::uint32_t classes, double capacity, const OfClasses& wanted,
                   bool at_nic);

}  // namespace dryfly::flow
