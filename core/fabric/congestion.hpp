// Congestion management: an end-point that is sent more than it can take is found by the switch before it, and its
// sources are held back to their fair share at their own NICs, so that what they send does not fill the buffers of the
// fabric and victims go undisturbed.
//
// Models what is published of Rosetta (fact sheet B1, S0: every switch follows what is outstanding for each pair of
// end-points; contributors to a hot end-point get stiff back-pressure, others none; B3: fine-grained flow control down
// to the NIC, on by default). The mechanism in detail and its constants are ours:
//  * The last switch knows what waits for a NIC, and whose it is. More than `hot_queue` opens an account of it: the
//    sources seen in this and the last epoch are the contributors.
//  * A new contributor is sent a notice at once, by the way its packet came; after that each acknowledgement that
//    passes the switch carries the interval at which that source may send to this NIC: the packet time of the link,
//    times the contributors, a little less while the queue is short and more while it is long.
//  * The source's NIC keeps that interval for the pair; others of its transfers overtake what is held back.
//  * When the queue has stayed short for an epoch the account is closed, and acknowledgements carry no interval.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/fabric/fabric_spec.hpp"
#include "core/fabric/links.hpp"
#include "core/fabric/pool.hpp"
#include "core/fabric/transfers.hpp"

namespace dryfly::fabric {

// The side of the last switch.
class HotSpots {
 public:
  HotSpots(const FabricSpec& fabric, Links& links);

  bool watches(const Port& port) const { return port.hot != none || (on_ && port.waiting_ps > hot_ps_); }
  // A packet has come that leaves by a port that is watched. True: its source is to be sent a notice.
  bool joined(Port& port, NicId source);
  // What an acknowledgement or notice that comes from that port's NIC tells; 0: nothing is held back.
  std::uint32_t interval_ps(Port& port);

 private:
  struct Account {
    std::unordered_map<std::uint32_t, std::uint64_t> last_epoch_of;  // by source; looked up, never iterated
    std::uint64_t epoch = 1;
    std::uint64_t epoch_end_ps = 0;
    std::uint64_t longest_ps = 0;  // queue in this epoch
    std::uint32_t sources = 0;     // seen in this epoch
    std::uint32_t sources_before = 0;
  };

  std::uint64_t contributors(const Account& account) const;
  // The time in which the fabric reacts to what an account tells.
  std::uint64_t reaction_ps(const Account& account) const { return round_trip_ps_ + contributors(account) * frame_ps_; }
  // At the end of an epoch: begins the next, or closes the account.
  void look_back(Port& port);

  Links& links_;
  bool on_;
  std::uint64_t hot_ps_;
  std::uint64_t round_trip_ps_;
  std::uint64_t frame_ps_;
  Pool<Account> accounts_;
};

// The side of the sources: the pairs that are held back, and the transfers that wait for it, in a line by
// OpenTransfer::next_turn. Some calls return an instant: Links is to schedule an event of the pair then, unless never.
class Holds {
 public:
  Holds(Transfers& transfers, std::uint64_t frame_ps) : transfers_(transfers), frame_ps_(frame_ps) {}

  // What is told of a pair; 0 ends the hold. Returns the line of those that waited, if they may go now.
  std::uint32_t tell(NicId source, NicId target, std::uint32_t interval_ps);
  bool holds(NicId source, NicId target, std::uint64_t now_ps);
  std::uint64_t park(std::uint32_t transfer);
  // A packet of the pair has been sent.
  std::uint64_t sent(NicId source, NicId target, std::uint32_t transmission_ps, std::uint64_t now_ps);

  struct Over {
    std::uint32_t transfer = none;  // may go on
    std::uint64_t wake_at_ps = never.ps;
  };
  Over over(NicId source, NicId target, std::uint64_t now_ps);

  bool any() const { return !holds_.empty(); }

 private:
  struct Hold {
    std::uint64_t interval_ps = 0;
    std::uint64_t next_ps = 0;  // earliest next packet
    std::uint64_t wake_ps = never.ps;
    std::uint32_t first = none;
    std::uint32_t last = none;
  };
  static std::uint64_t pair_of(NicId source, NicId target) {
    return (static_cast<std::uint64_t>(source.value) << 32) | target.value;
  }

  Transfers& transfers_;
  std::uint64_t frame_ps_;
  std::unordered_map<std::uint64_t, Hold> holds_;  // looked up, never iterated
};

}  // namespace dryfly::fabric
