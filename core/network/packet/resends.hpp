// What a NIC is to send once more, by whoever finds that out: Retry for what was lost, Connections for what its target
// had no room to track. And what these two need of the NICs that send, and what NICs count of it, whatever the reason.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "core/contract/network.hpp"
#include "core/network/fabric/pool.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

class Resends {
 public:
  bool empty() const { return queues_.empty(); }
  void push(NicId nic, std::uint32_t packet) { queues_[nic].push_back(packet); }
  // The next packet that the NIC is to send again; `none`.
  std::uint32_t next_of(NicId nic) const {
    const auto queue = queues_.find(nic);
    return queue == queues_.end() ? none : queue->second.front();
  }
  // It has left the NIC, or has no place any more.
  void pop(NicId nic) {
    const auto queue = queues_.find(nic);
    queue->second.pop_front();
    if (queue->second.empty()) queues_.erase(queue);
  }

  NicAccount& account(NicId nic) { return accounts_[nic]; }
  // Of the NICs that have had any trouble.
  const std::map<NicId, NicAccount>& accounts() const { return accounts_; }

 private:
  std::map<NicId, std::deque<std::uint32_t>> queues_;
  std::map<NicId, NicAccount> accounts_;
};

class ResendOutlet {
 public:
  virtual ~ResendOutlet() = default;
  virtual void leave_window(std::uint32_t packet) = 0;
  // There may be something to send.
  virtual void resume(NicId nic) = 0;
  // The transfer may take its turn again.
  virtual void append_turn(NicId nic, std::uint32_t transfer) = 0;
  // The packet is gone for good; the last one takes its transfer along.
  virtual void release(std::uint32_t packet) = 0;
  // The submitter is told.
  virtual void undeliverable(std::uint32_t handle, bool delivered) = 0;
};

}  // namespace dryfly::fabric
