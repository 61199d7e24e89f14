// FI_FENCE: a command that waits until everything that its end-point has sent out before it is complete, and with it
// what comes after it, as the NIC's command queue does (C_CMD_CQ_FENCE). Kept for end-points that have asked for
// FI_FENCE.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/unit/unit.hpp"

namespace dryfly {

class Fences {
 public:
  // Whether any end-point has asked; nearly none does, and then a message costs nothing here.
  bool in_use() const { return !queues_.empty(); }
  void open(EndpointId endpoint) { queues_[endpoint.value] = {}; }
  // The commands that still waited; they do not any more.
  std::vector<std::uint32_t> close(EndpointId endpoint) {
    const auto found = queues_.find(endpoint.value);
    if (found == queues_.end()) return {};
    std::vector<std::uint32_t> held = std::move(found->second.held);
    queues_.erase(found);
    return held;
  }
  // False: the command waits.
  bool starts(EndpointId endpoint, std::uint32_t slot, bool fenced) {
    const auto found = queues_.find(endpoint.value);
    if (found == queues_.end()) return true;
    Queue& queue = found->second;
    if (!queue.held.empty() || (fenced && queue.unfinished > 0)) {
      queue.held.push_back(slot);
      return false;
    }
    ++queue.unfinished;
    return true;
  }
  // A command is complete. Those that have to be tried again, in order.
  std::vector<std::uint32_t> finished(EndpointId endpoint) {
    const auto found = queues_.find(endpoint.value);
    if (found == queues_.end() || found->second.unfinished == 0) return {};
    if (--found->second.unfinished > 0) return {};
    return std::exchange(found->second.held, {});
  }

 private:
  struct Queue {
    std::uint64_t unfinished = 0;
    std::vector<std::uint32_t> held;
  };
  std::unordered_map<std::uint32_t, Queue> queues_;  // by end-point; looked up only
};

}  // namespace dryfly
