// Adds one message or RMA operation to the totals.
#pragma once

#include "core/nic/nic.hpp"

namespace dryfly::nic {

inline void count(NicTotals& totals, Protocol protocol, bool on_node, std::uint32_t switch_hops, Bytes size) {
  DRYFLY_CHECK(on_node || switch_hops < NicTotals::on_node_column);
  const std::uint32_t column = on_node ? NicTotals::on_node_column : switch_hops;
  ++totals.messages[static_cast<std::size_t>(protocol)][column];
  totals.bytes[static_cast<std::size_t>(protocol)][column] += size.count;
}

}  // namespace dryfly::nic
