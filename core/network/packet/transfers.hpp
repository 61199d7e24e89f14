// The transfers under way, and the flows that ordered ones form: one for each (source, target, end-point, class) that
// has any.
// A flow keeps its path until none of its packets is in flight, and sends its transfers one after the other; as
// every queue on the path is first-in first-out, they arrive in order. A flow that is to leave a loaded path sends
// nothing until then (docs/model/routing.md#draining-a-flow).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/contract/network.hpp"
#include "core/network/fabric/flow_name.hpp"
#include "core/network/fabric/pool.hpp"
#include "core/network/packet/packet.hpp"
#include "core/network/packet/shared_pool.hpp"
#include "core/unit/key_table.hpp"

namespace dryfly::fabric {

// What the NICs at both ends keep of a flow, see core/network/packet/connections.hpp.
struct Tracked {
  bool open = false;                 // the source has an entry for it
  bool at_target = false;            // and the target
  bool closing = false;              // ahead of its time, for another flow
  bool refusing = false;             // by the target: what comes before the source sends again
  bool short_of_results = false;     // once the target had no room for one: it is sent again in batches
  std::uint32_t acknowledged = 0;    // packets, ever
  std::uint32_t taken = 0;           // by the target, ever
  std::uint32_t held = 0;            // of these: those whose result the target still keeps
  std::uint32_t idle_before = none;  // flows that turned idle before and after it
  std::uint32_t idle_behind = none;
  std::uint64_t closes_at_ps = never.ps;  // `never`: it is not idle
};

struct Flow {
  std::uint64_t name = 0;
  Path path;
  Way way;  // that the path begins with
  bool routed = false;
  std::uint32_t leaves = none;       // port; while it does it sends nothing
  std::uint32_t transfers = 0;       // not yet acknowledged
  std::uint64_t in_flight_ps = 0;    // transmission time of the packets sent and not yet acknowledged
  std::uint32_t last_unsent = none;  // transfer; the next one is sent behind it
  std::uint32_t parked = none;       // transfer whose turn came while the flow was draining
  // With retries only, in packets: sent ever, and taken by the target.
  std::uint32_t sent = 0;
  std::uint32_t expected = 0;
  std::uint8_t path_number = 0;
  std::uint32_t unsettled = 0;  // packets sent whose answer is not home
  bool retrying = false;        // refused packets of it are sent again, and until all are settled nothing else is
  Tracked tracked;
};

struct OpenTransfer {
  NicId source;
  NicId target;
  std::uint32_t handle = 0;
  std::uint32_t flow = none;        // none: unordered
  std::uint16_t traffic_class = 0;  // of the profile
  std::uint8_t source_memory = 0;
  std::uint8_t target_memory = 0;
  std::uint64_t unsent_bytes = 0;
  std::uint32_t unsent_packets = 0;
  std::uint32_t undelivered_packets = 0;
  std::uint32_t unacknowledged_packets = 0;
  std::uint32_t next_turn = none;        // transfer behind it at its NIC
  std::uint32_t next_in_flow = none;     // transfer that may start when this one is sent
  std::uint32_t place_under_way = none;  // in the list of its NIC, once something is sent
  bool meets_bus = false;                // HostBus::concerns
  bool failed = false;                   // given up: its packets only have to go
  std::uint32_t in_flight() const { return unacknowledged_packets - unsent_packets; }
};

class Transfers {
 public:
  using Space = SharedPool<OpenTransfer>::Space;
  explicit Transfers(const std::shared_ptr<Space>& space = std::make_shared<Space>()) : transfers_(space) {}

  OpenTransfer& operator[](std::uint32_t index) { return transfers_[index]; }
  Flow& flow(std::uint32_t index) { return flows_[index]; }
  // The flow leaves its way, which begins at that port.
  void drain(Flow& flow, std::uint32_t port) {
    flow.leaves = port;
    leaving_[port].ps += flow.in_flight_ps;
  }
  // What flows that leave the port have in flight, as transmission time.
  std::uint64_t leaving_ps(std::uint32_t port) {
    const InFlight* leaving = leaving_.find(port);
    return leaving == nullptr ? 0 : leaving->ps;
  }
  // Whether the transfer, whose turn it is, has to wait until its flow has nothing in flight.
  bool parks(std::uint32_t index) {
    if ((leaving_.empty() && flows_retrying_ == 0) || transfers_[index].flow == none) return false;
    Flow& flow = flows_[transfers_[index].flow];
    const bool waits = flow.leaves != none || flow.retrying;
    if (waits) flow.parked = index;
    return waits;
  }
  void set_retrying(Flow& flow, bool retrying) {
    flows_retrying_ += static_cast<std::uint32_t>(retrying) - static_cast<std::uint32_t>(flow.retrying);
    flow.retrying = retrying;
  }
  // One packet of the flow less is in flight. Returns a transfer that may take its turn again; `none`.
  std::uint32_t left_fabric(Flow& flow, std::uint32_t transmission_ps) {
    flow.in_flight_ps -= transmission_ps;
    --flow.unsettled;
    if (flow.leaves != none) {
      InFlight& leaving = *leaving_.find(flow.leaves);
      leaving.ps -= transmission_ps;
      if (leaving.ps == 0) leaving_.erase(leaving);
    }
    if (flow.in_flight_ps > 0) return none;
    flow.routed = false;
    flow.leaves = none;
    return std::exchange(flow.parked, none);
  }
  // Whether it stays within its NIC.
  bool loops(std::uint32_t index) const { return transfers_[index].source == transfers_[index].target; }
  void prefetch(std::uint32_t index) const { transfers_.prefetch(index); }
  std::uint32_t in_use() const { return transfers_.in_use(); }

  std::uint32_t open(const Transfer& asked, std::uint32_t traffic_class, Bytes payload_max) {
    const std::uint64_t packets = asked.size.count == 0 ? 1 : (asked.size.count - 1) / payload_max.count + 1;
    DRYFLY_CHECK(packets < none);
    const std::uint32_t index = transfers_.take();
    OpenTransfer& transfer = transfers_[index];
    transfer = {.source = asked.source,
                .target = asked.target,
                .handle = asked.handle,
                .traffic_class = static_cast<std::uint16_t>(traffic_class),
                .source_memory = asked.source_memory,
                .target_memory = asked.target_memory,
                .unsent_bytes = asked.size.count};
    transfer.unsent_packets = transfer.undelivered_packets = transfer.unacknowledged_packets =
        static_cast<std::uint32_t>(packets);
    if (asked.ordered) {
      transfer.flow = flow_of(flow_name(asked, traffic_class));
      ++flows_[transfer.flow].transfers;
    }
    return index;
  }

  void close(std::uint32_t index) {
    const OpenTransfer& transfer = transfers_[index];
    if (transfer.flow != none && --flows_[transfer.flow].transfers == 0 && !flows_[transfer.flow].tracked.open) {
      forget(transfer.flow);
    }
    transfers_.give_back(index);
  }
  // A flow without transfers is kept as long as NICs have entries for it.
  void forget(std::uint32_t flow) {
    flow_numbers_.erase(*flow_numbers_.find(flows_[flow].name));
    flows_.give_back(flow);
  }
  static NicId source_of(const Flow& flow) { return source_of_flow(flow.name); }
  static NicId target_of(const Flow& flow) { return target_of_flow(flow.name); }

 private:
  std::uint32_t flow_of(std::uint64_t name) {
    std::uint32_t& flow = flow_numbers_[name].value;
    if (flow == none) {
      flow = flows_.take();
      flows_[flow] = Flow{};
      flows_[flow].name = name;
    }
    return flow;
  }

  struct FlowNumber {
    std::uint32_t value = none;
  };
  struct InFlight {
    std::uint64_t ps = 0;
  };

  SharedPool<OpenTransfer> transfers_;
  Pool<Flow> flows_;
  KeyTable<FlowNumber> flow_numbers_;
  KeyTable<InFlight> leaving_;  // by port
  std::uint32_t flows_retrying_ = 0;
};

}  // namespace dryfly::fabric
