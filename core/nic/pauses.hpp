// Lossless end-points (FI_CXI_MSG_LOSSLESS): the NIC takes no further message of a class until its provider has posted
// a buffer. The messages wait here, in the NIC and not in the network before it, and memory operations of the class go
// on.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "core/nic/counter_bank.hpp"
#include "core/nic/inboxes.hpp"
#include "core/nic/message.hpp"

namespace dryfly::nic {

class Pauses {
 public:
  Pauses(NicTotals& totals, CounterBank& counters, MessageTable& messages, Inboxes& inboxes)
      : totals_(totals), counters_(counters), messages_(messages), inboxes_(inboxes) {}

  void pause(std::uint32_t message);
  // True if others of its class wait already; it then waits behind them.
  bool waits_in_line(std::uint32_t message);
  // All that wait at the NIC, class by class in their order; they wait no longer.
  std::vector<std::uint32_t> end_of(NicId nic);

 private:
  NicTotals& totals_;
  CounterBank& counters_;
  MessageTable& messages_;
  Inboxes& inboxes_;
  std::map<std::pair<std::uint32_t, TrafficClass>, std::deque<std::uint32_t>> paused_;  // by NIC and class
};

}  // namespace dryfly::nic
