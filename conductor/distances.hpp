// How far the ranks are from what their end-points talk through: their NIC, or the memory of their node. A rank that
// has both kinds hears of the memory sooner, so the least of the two limits how far the network may be ahead of the
// ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/host/cpu_costs.hpp"
#include "core/unit/unit.hpp"
#include "wire/wire.hpp"

namespace dryfly {

class Distances {
 public:
  Distances(std::size_t rank_count, const HostLatencies& to_nic, const HostLatencies& to_memory)
      : to_nic_(to_nic),
        to_memory_(to_memory),
        least_(to_nic),
        in_memory_(rank_count * wire::endpoint_count_max),
        has_memory_(rank_count) {}

  void open(EndpointId endpoint, bool in_memory) {
    in_memory_[endpoint.value] = in_memory;
    if (!in_memory) return;
    any_ = true;
    has_memory_[wire::address_rank(endpoint.value)] = true;
    least_.command = std::min(least_.command, to_memory_.command);
    least_.completion = std::min(least_.completion, to_memory_.completion);
  }

  bool is_in_memory(EndpointId endpoint) const { return any_ && in_memory_[endpoint.value]; }
  // Whether any of its end-points ever has been in memory.
  bool has_memory(RankId rank) const { return any_ && has_memory_[rank.value]; }
  const HostLatencies& of(EndpointId endpoint) const { return is_in_memory(endpoint) ? to_memory_ : to_nic_; }
  const HostLatencies& to_nic() const { return to_nic_; }
  const HostLatencies& least() const { return least_; }

 private:
  HostLatencies to_nic_;
  HostLatencies to_memory_;
  HostLatencies least_;  // of those that have been opened, and of NICs
  bool any_ = false;
  std::vector<bool> in_memory_;   // by address
  std::vector<bool> has_memory_;  // by rank
};

}  // namespace dryfly
