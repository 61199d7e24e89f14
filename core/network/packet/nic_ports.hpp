// The NICs' side of the fabric. Egress cuts transfers into packets, one packet of each transfer in turn, and keeps at
// most a window of packets unacknowledged; ingress counts, and sends an acknowledgement for each packet.
//
// Models the outstanding-packet limit of Cassini, which is one of each MCU
// (docs/model/links.md#outstanding-packets), as one window for each NIC and traffic class, and acknowledgement
// frames that occupy links (docs/model/links.md#control-traffic). A packet's acknowledgement starts when its last
// byte is there and goes before data of the same NIC that is not yet committed. Classes share the link by their
// assured shares and below their ceilings (qos.hpp); transfers to a hot end-point are held back (congestion.hpp).
// What is lost is sent again by Retry, what a target could not track by Connections.
//
// What a NIC sends to itself (docs/model/on-node.md#through-the-nic) takes its turn at the NIC's egress and then among
// what its switch has for it, uses no link and no buffer of the switch, and is acknowledged within the NIC.
// Leaves out: coalescing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/contract/network.hpp"
#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/frames.hpp"
#include "core/network/fabric/pool.hpp"
#include "core/network/fabric/qos.hpp"
#include "core/network/packet/congestion.hpp"
#include "core/network/packet/connections.hpp"
#include "core/network/packet/links.hpp"
#include "core/network/packet/packet.hpp"
#include "core/network/packet/resends.hpp"
#include "core/network/packet/retry.hpp"
#include "core/network/packet/room_waits.hpp"
#include "core/network/packet/transfers.hpp"
#include "core/network/packet/under_way.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::fabric {

class NicPorts final : private ResendOutlet {
 public:
  // Those of `nics` from `first_nic` on; they send to any of the machine's.
  NicPorts(NicId first_nic, std::uint32_t nics, const FabricSpec& fabric, Links& links, SharedPool<Packet>& packets,
           Transfers& transfers);

  // A packet of the class may come.
  void open_class(std::uint32_t traffic_class);
  const QosProfile& profile() const { return qos_; }
  // No bus: it never holds anything up.
  void connect(TransferSink* sink, HostBus* bus) {
    sink_ = sink;
    bus_ = bus;
  }
  // Packets may get lost from now on.
  void retry_by(const RetrySchedule& schedule) {
    retry_ = std::make_unique<Retry>(schedule, links_, packets_, transfers_, connections_, resends_,
                                     static_cast<ResendOutlet&>(*this));
  }
  // Null without faults.
  Retry* retry() { return retry_.get(); }
  Connections& connections() { return connections_; }
  void submit(const Transfer& asked);
  // The last byte of a packet has come in.
  void deliver(std::uint32_t port, std::uint32_t packet);
  // An acknowledgement is home.
  void acknowledge(std::uint32_t port, std::uint32_t packet);
  // Fetch what an arrival and wake() will need into the cache, as Switches does.
  void prefetch_for_arrival(std::uint32_t port, std::uint32_t packet, unsigned stage) const;
  void prefetch_for_wake(std::uint32_t port, unsigned stage) const;
  // The link or a credit is free.
  void wake(std::uint32_t port);
  // A transfer of this class to this target may have waited long enough.
  void end_hold(std::uint32_t port, std::uint32_t traffic_class, NicId target);

  NetworkTotals totals() const;
  std::map<NicId, NicAccount> accounts(Instant until) const;
  std::uint32_t ack_ps() const { return ack_ps_; }

 private:
  struct Egress {
    std::uint64_t stream = 0;    // names the draws of this NIC's packets
    std::uint32_t sequence = 0;  // packets sent ever, modulo 2^32
    std::uint32_t arbiter = none;
    std::uint32_t classes = 0;       // bits: those with packets to send
    std::uint32_t without_room = 0;  // bits: of these, those for which the switch has no room
    UnderWay::List under_way;
  };
  // Of one class at one NIC.
  struct Turns {
    std::uint32_t first = none;  // transfers with packets to send
    std::uint32_t last = none;
    std::uint32_t in_flight = 0;  // packets sent and not acknowledged
  };

  Turns& turns(NicId nic, std::uint32_t traffic_class) { return turns_[traffic_class][nic.value - first_nic_]; }
  Egress& egress(NicId nic) { return nics_[nic.value - first_nic_]; }
  void send(NicId nic);
  std::uint32_t choose_class(NicId nic, std::uint32_t ready);
  void wait_for_class(NicId nic, std::uint32_t open);
  // Of the transfer whose turn it is; null if it is not held back.
  Holds::Hold* hold_of_front(NicId nic, std::uint32_t traffic_class);
  void hold_back(NicId nic, std::uint32_t traffic_class, Holds::Hold& hold);
  void send_packet(NicId nic, std::uint32_t traffic_class, Holds::Hold* hold);
  void append_turn(NicId nic, std::uint32_t transfer) override;
  // Puts a packet on the link, or onto the way within the NIC; returns when its first byte goes.
  std::uint64_t put_out(std::uint32_t port, std::uint32_t index);
  std::uint32_t take_turn(NicId nic, std::uint32_t traffic_class);
  void pass_turn(NicId nic, std::uint32_t traffic_class);
  static std::uint32_t name_under_way(NicId target, std::uint32_t traffic_class) {
    return traffic_class << 24 | target.value;  // NICs are fewer than 2^24, see Links
  }
  void close(NicId nic, std::uint32_t transfer);
  std::uint32_t outstanding(const Pair& pair) const;
  void tell(const Pair& pair, Holds::Hold* hold, std::uint32_t interval_ps);
  Arbiter& arbiter(Egress& egress);
  // What is to be sent again goes first: true if nothing of it waits for the link.
  bool send_again(NicId nic);
  // The rest of a transfer that was given up takes its turn without a packet: true if that was so.
  bool abandon(NicId nic, std::uint32_t traffic_class);
  // The target has no more to do with the packet than to answer.
  void answer(std::uint32_t port, std::uint32_t index, Packet& packet, PacketKind kind = PacketKind::acknowledgement) {
    packet.kind = kind;
    Port& link = links_[port];
    if (packet.looped) [[unlikely]] {
      packet.interval_ps() = 0;
      return links_.schedule_in_nic(port, links_.now_ps() + ack_ps_, EventKind::acknowledgement_at_nic, index);
    }
    links_.schedule_head_at_switch(link, links_.commit(link, ack_ps_), index, packet);
  }

  void leave_window(std::uint32_t packet) override;
  void resume(NicId nic) override { send(nic); }
  void release(std::uint32_t packet) override;
  void undeliverable(std::uint32_t handle, bool delivered) override { sink_->failed(handle, delivered); }

  Links& links_;
  SharedPool<Packet>& packets_;
  Transfers& transfers_;
  Resends resends_;
  Connections connections_;
  std::unique_ptr<Retry> retry_;  // with faults only
  TransferSink* sink_ = nullptr;
  HostBus* bus_ = nullptr;
  QosProfile qos_;
  Holds holds_;
  UnderWay under_way_;
  std::uint32_t first_nic_;
  LargeVector<Egress> nics_;
  std::array<LargeVector<Turns>, most_classes> turns_;  // by NIC; empty until a transfer of the class comes
  std::vector<Arbiter> arbiters_;
  RoomWaits room_waits_;
  NetworkTotals totals_;
  Frames frames_;
  std::uint32_t window_packets_;
  std::uint32_t ack_ps_;
};

}  // namespace dryfly::fabric
