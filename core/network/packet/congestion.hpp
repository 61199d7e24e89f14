// Congestion management: an end-point that is sent more than it can take is found by the switch before it, and its
// sources are held back to their fair share at their own NICs, so that what they send does not fill the buffers of the
// fabric and victims go undisturbed.
//
// Models what is published of Rosetta: every switch follows what is outstanding for each pair of end-points, and
// contributors to a hot end-point get stiff back-pressure, others none
// (docs/model/congestion.md#congestion-management), down to the NIC
// (docs/model/congestion.md#flow-control-down-to-the-nic). The mechanism in detail and its constants are ours:
//  * The last switch knows what waits for a NIC, and whose it is. More than `hot_queue` opens an account of it: the
//    sources seen in this and the last epoch are the contributors.
//  * Each class is held back against its own share of the link: what the arbiter (qos.hpp) gives it among those that
//    are hot, of what the others had in the last epoch left over. A class is hot when its
//    own packets wait for longer than `hot_queue` takes, at its share; one that stays within its share is not.
//  * A new contributor is sent a notice at once, by the way its packet came; after that each acknowledgement that
//    passes the switch carries the interval at which that source may send to this NIC in this class: the packet time
//    at the share of the class, times its contributors, a little less while its queue is short and more while it is
//    long.
//  * The source's NIC keeps that interval for the pair; others of its transfers overtake what is held back.
//  * With each epoch in which the queue stayed short the sources may send twice as fast; when that is more than the
//    share for each, the class is no longer hot, and acknowledgements carry no interval. All at once would be a burst.
//    The account is closed when none is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/pool.hpp"
#include "core/network/fabric/qos.hpp"
#include "core/network/packet/links.hpp"
#include "core/network/packet/transfers.hpp"
#include "core/unit/key_table.hpp"

namespace dryfly::fabric {

// The side of the last switch.
class HotSpots {
 public:
  HotSpots(const FabricSpec& fabric, Links& links);

  bool watches(const Port& port) const { return port.hot != none || (on_ && port.waiting_ps > hot_ps_); }
  struct Come {
    NicId source;
    std::uint32_t traffic_class = 0;
    std::uint64_t transmission_ps = 0;
  };
  // A packet has come that leaves by a port that is watched, where `waiting_ps` of its class wait now. True: its source
  // is to be sent a notice.
  bool joined(Port& port, const Come& come, std::uint64_t waiting_ps);
  // What an acknowledgement or notice of the class that comes from that port's NIC tells; 0: nothing is held back.
  std::uint32_t interval_ps(Port& port, std::uint32_t traffic_class, std::uint64_t waiting_ps);

 private:
  struct OfClass {
    bool hot = false;
    std::uint32_t quiet_epochs = 0;
    std::uint32_t sources = 0;  // seen in this epoch
    std::uint32_t sources_before = 0;
    std::uint64_t longest_ps = 0;  // queue in this epoch, at the link's rate
    std::uint64_t waiting_ps = 0;  // when last seen
    std::uint64_t came_ps = 0;     // time of transmission of what came in this epoch
    std::uint32_t had_ppm = 0;     // of the link in the last one
    std::uint64_t share_ppm = 0;   // of the link, if it is hot
    std::uint64_t contributors() const { return std::max({sources, sources_before, 1U}); }
  };
  struct Account {
    KeyTable<std::uint64_t> last_epoch_of;  // by class and source
    std::uint64_t epoch = 1;
    std::uint64_t epoch_start_ps = 0;
    std::uint64_t epoch_end_ps = 0;
    std::array<OfClass, most_classes> classes{};
  };

  // Where the hot classes, or what the others have, are no longer the same.
  void share_out(Account& account) const;
  // What the link has for a class among the hot ones, or would have if it were one.
  std::uint64_t share_ppm(const Account& account, std::uint32_t traffic_class) const;
  void open_account(Port& port);
  // At the end of an epoch: begins the next, or closes the account.
  void look_back(Port& port);

  Links& links_;
  std::vector<ClassShares> shares_;
  bool on_;
  std::uint64_t hot_ps_;
  std::uint64_t round_trip_ps_;
  std::uint64_t frame_ps_;
  Pool<Account> accounts_;
};

// Who is held back: what a NIC sends to another in one class.
struct Pair {
  NicId source;
  NicId target;
  std::uint32_t traffic_class = 0;
};

// The side of the sources: the pairs that are held back, and the transfers that wait for it, in a line by
// OpenTransfer::next_turn. A pair may have outstanding what its share delivers in a round trip, and two packets: so
// nothing follows what was sent before anybody knew until that has left the fabric. Some calls return an instant: an
// event of the pair is wanted then, unless never. A `Hold` lasts until the next `begin` or `end`.
class Holds {
 public:
  struct Hold {
    std::uint64_t interval_ps = 0;
    std::uint64_t next_ps = 0;  // earliest next packet
    std::uint64_t wake_ps = never.ps;
    std::uint32_t outstanding = 0;  // packets
    std::uint32_t first = none;
    std::uint32_t last = none;
  };

  Holds(Transfers& transfers, std::uint64_t frame_ps, std::uint64_t round_trip_ps)
      : transfers_(transfers), frame_ps_(frame_ps), round_trip_ps_(round_trip_ps) {}

  bool any() const { return !holds_.empty(); }
  // Of a pair that is held back; null for others.
  Hold* find(const Pair& pair) { return holds_.find(name_of(pair)); }
  Hold& begin(const Pair& pair, std::uint32_t packets_outstanding) {
    Hold& hold = holds_[name_of(pair)];
    hold.outstanding = packets_outstanding;
    return hold;
  }
  std::uint64_t tell(Hold& hold, std::uint32_t interval_ps, std::uint64_t now_ps) const;
  // Returns the line of those that waited: they may go.
  std::uint32_t end(const Hold& hold);
  // Nobody has used it for long.
  bool is_stale(const Hold& hold, std::uint64_t now_ps) const;

  bool may_send(const Hold& hold, std::uint64_t now_ps) const {
    return hold.next_ps <= now_ps &&
           hold.outstanding < 2 + round_trip_ps_ / std::max<std::uint64_t>(hold.interval_ps, 1);
  }
  std::uint64_t park(Hold& hold, std::uint32_t transfer, std::uint64_t now_ps);
  // A packet of the pair has been sent, or its acknowledgement is home.
  std::uint64_t sent(Hold& hold, std::uint32_t transmission_ps, std::uint64_t now_ps) const;
  static void acknowledged(Hold& hold) {
    DRYFLY_CHECK(hold.outstanding > 0);
    --hold.outstanding;
  }

  struct Over {
    std::uint32_t transfer = none;  // may go on
    std::uint64_t wake_at_ps = never.ps;
  };
  Over over(const Pair& pair, std::uint64_t now_ps);

 private:
  std::uint64_t arm(Hold& hold, std::uint64_t now_ps) const;
  static std::uint64_t name_of(const Pair& pair) {
    return (static_cast<std::uint64_t>(pair.traffic_class) << 56) |
           (static_cast<std::uint64_t>(pair.source.value) << 28) | pair.target.value;
  }

  Transfers& transfers_;
  std::uint64_t frame_ps_;
  std::uint64_t round_trip_ps_;
  KeyTable<Hold> holds_;
};

}  // namespace dryfly::fabric
