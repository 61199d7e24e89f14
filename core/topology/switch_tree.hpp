// A tree of NICs along the switches that they are on: those of a switch send to the first of them, these to the first
// of their group of switches, those to the root. Which NIC of a switch stands for it is decided by the order of the
// list.
#pragma once

#include <cstdint>
#include <vector>

#include "core/topology/dragonfly.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// Of each place of the list, the place that it sends to; the root's own is itself.
std::vector<std::uint32_t> switch_tree(const Dragonfly& topology, const std::vector<NicId>& nics, std::uint32_t root);

}  // namespace dryfly
