// The NIC's end-to-end reliability: what was lost is sent again until it is acknowledged or given up.
//
// Models Cassini's packet tracking and its retry handler (docs/model/reliability.md#retry-schedule): a packet that
// is not acknowledged within the time-out epoch counts one network time-out and is sent again, the n-th time after a
// further delay of the schedule; when the last retry has timed out too, its transfer is undeliverable and ends in an
// error. The target keeps the outcome of what it has taken, so a packet whose acknowledgement was lost is answered
// and not delivered twice. Of an ordered flow the target takes packets in sequence only and refuses others (NACK,
// sequence error); a flow times out as a whole, by its oldest packet, and its packets are sent again in order, on a
// path drawn anew.
//
// While a packet waits for its time-out it holds its place in the window; then the retry handler has it and the
// place is free. A refused packet is sent again as soon as its refusal is home, unless its flow waits for a time-out.
//
// The simulator knows what is lost, so only that gets an event: a packet's timer costs nothing while all is well. So
// a packet that is merely late never times out. What is refused for lack of a tracker is the business of Connections
// (core/network/packet/connections.hpp). Leaves out: parking of down peers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/contract/network.hpp"
#include "core/network/fabric/fault_plan.hpp"
#include "core/network/packet/connections.hpp"
#include "core/network/packet/links.hpp"
#include "core/network/packet/packet.hpp"
#include "core/network/packet/resends.hpp"
#include "core/network/packet/shared_pool.hpp"
#include "core/network/packet/transfers.hpp"

namespace dryfly::fabric {

class Retry {
 public:
  Retry(const RetrySchedule& schedule, Links& links, SharedPool<Packet>& packets, Transfers& transfers,
        Connections& connections, Resends& resends, ResendOutlet& outlet)
      : schedule_(schedule),
        links_(links),
        packets_(packets),
        transfers_(transfers),
        connections_(connections),
        resends_(resends),
        outlet_(outlet) {}

  // A packet leaves its NIC, for the first time or again.
  void sent(std::uint32_t packet, std::uint64_t start_ps);
  void sent_again(std::uint32_t packet, std::uint64_t start_ps);
  // It has come to its target: whether the target takes it. Whatever it is, it is answered, and by what is said here.
  bool takes(std::uint32_t packet, PacketKind& answer);
  // Its answer is home: true if that settles it.
  bool settles(std::uint32_t packet);
  // It, or its answer, is lost.
  void lost(std::uint32_t packet);
  void due(std::uint32_t packet);

  std::uint64_t timeouts() const { return timeouts_; }
  std::uint64_t packets_lost() const { return packets_lost_; }
  std::uint64_t packets_refused() const { return packets_refused_; }
  std::uint64_t transfers_failed() const { return transfers_failed_; }

 private:
  struct Record {
    std::uint64_t sent_ps = 0;
    std::uint32_t flow_sequence = 0;
    std::uint8_t timeouts = 0;
    bool taken = false;  // by the target
    bool in_window = false;
    bool delayed = false;  // has timed out and waits for its delay
  };
  // Of a flow: packets that wait for a time-out, by their sequence. The first that was lost has the timer.
  struct Recovery {
    std::map<std::uint32_t, std::uint32_t> waiting;
    bool armed = false;
  };

  struct Notice {
    std::uint32_t handle = 0;
    bool delivered = false;
  };

  NicId source_of(std::uint32_t packet) { return transfers_[packets_[packet].transfer].source; }
  std::uint32_t flow_of(std::uint32_t packet) { return transfers_[packets_[packet].transfer].flow; }
  bool cancelled(std::uint32_t packet);
  bool blocked(std::uint32_t packet, std::uint32_t flow) const;
  void schedule(std::uint32_t packet, std::uint64_t at_ps);
  // One more time-out of this packet: whether there is a retry left; then it comes after a delay, perhaps none.
  bool retry_left(std::uint32_t packet, std::uint64_t& delay_ps);
  void leave_window(std::uint32_t packet);
  void queue(std::uint32_t packet);
  void send_flow_again(std::uint32_t flow);
  void give_up(const std::vector<std::uint32_t>& packets);
  void cancel_flow(std::uint32_t flow);

  const RetrySchedule& schedule_;
  Links& links_;
  SharedPool<Packet>& packets_;
  Transfers& transfers_;
  Connections& connections_;
  Resends& resends_;
  ResendOutlet& outlet_;
  std::vector<Record> records_;                   // by packet
  std::map<std::uint32_t, Recovery> recoveries_;  // by flow
  std::uint64_t timeouts_ = 0;
  std::uint64_t packets_lost_ = 0;
  std::uint64_t packets_refused_ = 0;
  std::uint64_t transfers_failed_ = 0;
};

}  // namespace dryfly::fabric
