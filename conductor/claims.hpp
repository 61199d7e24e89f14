// Peeks that have claimed a message: it stays with the NIC until the receive that names the peek takes it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "conductor/open_command.hpp"

namespace dryfly {

class Claims {
 public:
  explicit Claims(OpenCommands& commands) : commands_(commands) {}

  void add(std::uint32_t peek) { peeks_[commands_[peek].endpoint().value].push_back(peek); }
  // The slot of the end-point's peek with that context, which has claimed nothing from now on; no_slot: there is none.
  std::uint32_t take(EndpointId endpoint, std::uint64_t context) {
    const auto found = peeks_.find(endpoint.value);
    if (found == peeks_.end()) return no_slot;
    auto& peeks = found->second;
    const auto peek = std::find_if(peeks.begin(), peeks.end(),
                                   [&](std::uint32_t slot) { return commands_[slot].command.context == context; });
    if (peek == peeks.end()) return no_slot;
    const std::uint32_t slot = *peek;
    peeks.erase(peek);
    return slot;
  }
  void forget(EndpointId endpoint) { peeks_.erase(endpoint.value); }

 private:
  OpenCommands& commands_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> peeks_;  // by end-point; looked up only
};

}  // namespace dryfly
