// The switches: what happens when a head has crossed one, and when an output looks for its next packet.
//
// Models Rosetta (docs/model/switch.md#inside, docs/model/switch.md#switch-latency) as an input-buffered switch with
// virtual output queues and fair arbitration. It cuts through: the head may leave a fixed latency after it came,
// long before the tail is there; input and output have one rate, so the tail never runs dry. The input buffer is
// free again when the tail has left. An input may feed several outputs at a time, so inputs never block by
// themselves. Acknowledgements have room of their own, go before data that waits and wait for no credit, so they
// cannot block or be blocked by data; each belongs to a place in its source's window, which bounds them.
//
// Outputs share their links among traffic classes by the profile of qos.hpp; switches before a NIC watch for hot
// end-points (congestion.hpp).
//
// Leaves out: the tiles and their internal buses.
#pragma once

#include <cstdint>
#include <memory>

#include "core/network/fabric/manager.hpp"
#include "core/network/fabric/qos.hpp"
#include "core/network/packet/congestion.hpp"
#include "core/network/packet/link_loads.hpp"
#include "core/network/packet/links.hpp"
#include "core/network/packet/output_queues.hpp"
#include "core/network/packet/packet.hpp"
#include "core/network/packet/transfers.hpp"
#include "core/route/routing.hpp"

namespace dryfly::fabric {

class Switches {
 public:
  Switches(const Dragonfly& dragonfly, const FabricSpec& fabric, std::unique_ptr<Routing> routing, Links& links,
           SharedPool<Packet>& packets, Transfers& transfers);

  // From now on ways that the manager has the routes avoid are not taken.
  void managed_by(Manager& manager) { manager_ = &manager; }

  // A head that came in by this port has crossed the switch.
  void head(std::uint32_t input, std::uint32_t packet);
  // A NIC sends this packet to itself: it takes its turn among those that this output has for that NIC, and is in the
  // NIC at its end.
  void looped(std::uint32_t output, std::uint32_t packet);
  std::uint32_t acknowledgement_ps() const { return ack_ps_; }
  // Fetch what head() and wake() will need into the cache: what the port and the packet lead to in the first stage,
  // what that leads to in the second.
  void prefetch_for_head(std::uint32_t input, std::uint32_t packet, unsigned stage) const;
  void prefetch_for_wake(std::uint32_t output, unsigned stage) const;
  // Another region returns a credit.
  void credit_from_far(const Crossing& crossing);
  // The output may have room for more.
  void wake(std::uint32_t output);

 private:
  void route(Packet& packet, std::uint32_t first_port);
  Way decide(Path& path, const OpenTransfer& transfer, std::uint32_t draw, SwitchId here) const {
    if (manager_ != nullptr) [[unlikely]]
      return decide_in_use(path, transfer, draw, here);
    return lay_drawn(path, transfer, draw, here);
  }
  // The way that was laid.
  Way lay_drawn(Path& path, const OpenTransfer& transfer, std::uint32_t draw, SwitchId here) const;
  Way decide_in_use(Path& path, const OpenTransfer& transfer, std::uint32_t draw, SwitchId here) const;
  bool should_leave(const Flow& flow, const OpenTransfer& transfer, std::uint32_t draw, SwitchId here);
  // Whether the packet of a flow is to go by itself: what is known of its flow's path is of a later one.
  bool is_left_behind(Packet& packet, Flow& flow) const;
  bool may_go_at_once(Port& output, std::uint32_t output_id, const Packet& packet, std::uint32_t channel);
  void send_notice(const Packet& packet, std::uint32_t input, Port& output);
  void forward_acknowledgement(std::uint32_t input, std::uint32_t index);
  void grant(std::uint32_t output, std::uint32_t input, std::uint32_t index);
  // The output's arbiter takes note of it.
  void serve(Port& output, const Packet& packet);
  void wake_sender(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t channel);
  void sleep(std::uint32_t output);
  std::uint32_t ready_channels(std::uint32_t output, std::uint32_t traffic_class);
  OutputQueues::Turn next_turn(std::uint32_t output);
  bool is_capped(std::uint32_t traffic_class) const { return qos_.classes[traffic_class].capped(); }

  const Dragonfly& dragonfly_;
  Links& links_;
  SharedPool<Packet>& packets_;
  Transfers& transfers_;
  OutputQueues queues_;
  std::unique_ptr<Routing> routing_;
  LinkLoads loads_;
  Manager* manager_ = nullptr;  // with faults only
  QosProfile qos_;
  HotSpots hot_spots_;
  std::uint32_t ack_ps_;
};

}  // namespace dryfly::fabric
