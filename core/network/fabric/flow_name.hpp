// What tells a flow of ordered transfers from others, as one number: its source, target, class of the profile and what
// is at the target (docs/model/routing.md#what-a-flow-is).
#pragma once

#include <cstdint>

#include "core/contract/network.hpp"
#include "core/network/fabric/qos.hpp"

namespace dryfly::fabric {

// NICs are fewer than 2^24, see core/network/packet/links.hpp.
inline std::uint64_t flow_name(const Transfer& asked, std::uint32_t traffic_class) {
  static_assert(most_classes <= 16);
  DRYFLY_CHECK(asked.flow < flow_limit);
  return static_cast<std::uint64_t>(asked.flow) << 52 | static_cast<std::uint64_t>(traffic_class) << 48 |
         static_cast<std::uint64_t>(asked.source.value) << 24 | asked.target.value;
}
constexpr NicId source_of_flow(std::uint64_t name) { return {static_cast<std::uint32_t>(name >> 24) & 0xffffffU}; }
constexpr NicId target_of_flow(std::uint64_t name) { return {static_cast<std::uint32_t>(name) & 0xffffffU}; }

}  // namespace dryfly::fabric
