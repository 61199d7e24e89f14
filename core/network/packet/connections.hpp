// The finite trackers of the NICs: what a source and a target keep of each flow of ordered packets, and what becomes of
// packets that find no room.
//
// Models Cassini's packet connection tracking (docs/model/reliability.md#trackers). The first packet of a flow opens a
// connection: an entry of the source's table (SCT) and, when it comes in, one of the target's (TCT). It is closed when
// nothing of it has been under way for the idle time. The target keeps the outcome of each packet that it has taken
// (TRS) until a later packet of the connection, or its close, tells it that the answer is home. A packet that finds no
// entry at its target is refused (NACK), and so is all that follows it; when the outcome of everything that the source
// has sent is known, its retry handler sends what was refused again, first at once and then after growing pauses
// (docs/model/reliability.md#back-off). Meanwhile nothing new of the flow is sent. A source without a free entry sends
// nothing of further flows; it closes idle connections ahead of their time.
//
// Counts are settled when somebody looks, so a connection costs no event unless a table is full. Clears and closes take
// time and no bandwidth. Leaves out: shares that classes have of the tables
// (docs/model/reliability.md#shares-of-trackers), the tables of messages (SMT, MST), wrong guesses of the hardware's
// free counts, closes that are lost.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/contract/network.hpp"
#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/packet/links.hpp"
#include "core/network/packet/packet.hpp"
#include "core/network/packet/resends.hpp"
#include "core/network/packet/shared_pool.hpp"
#include "core/network/packet/transfers.hpp"

namespace dryfly::fabric {

class Connections {
 public:
  // Of `nics` NICs; of none if the spec has no trackers.
  Connections(const FabricSpec& fabric, std::uint32_t nics, Links& links, SharedPool<Packet>& packets,
              Transfers& transfers, Resends& resends, ResendOutlet& outlet);

  // Whether the transfer, whose turn it is, has to wait for an entry of its source; then it comes again by
  // ResendOutlet::append_turn.
  bool holds_up(NicId nic, std::uint32_t transfer) {
    const std::uint32_t flow = transfers_[transfer].flow;
    if (flow == none || tables_.empty()) return false;
    const Table& table = tables_[nic.value];
    if (table.sources < spec_.source_connections && table.closing == 0) return false;
    return lacks_entry(nic, transfer, flow);
  }
  // A packet of the flow leaves its NIC, for the first time.
  void sent(NicId nic, std::uint32_t flow_number, Flow& flow, std::uint32_t packet) {
    const bool first = flow.unsettled++ == 0;
    if (tables_.empty()) return;
    if (first) begin(nic, flow_number, flow);
    note_clear(flow, packet);
  }
  void sent_again(const Flow& flow, std::uint32_t packet) {
    if (!tables_.empty()) note_clear(flow, packet);
  }
  // It has come to its target: how that answers.
  PacketKind takes(std::uint32_t flow_number, std::uint32_t packet) {
    return tables_.empty() ? PacketKind::acknowledgement : answer_to(transfers_.flow(flow_number), packet);
  }
  // Its answer is home and settles it, or it is given up.
  void settled(NicId nic, std::uint32_t flow_number, Flow& flow, bool acknowledged) {
    if (tables_.empty()) return;
    if (acknowledged) ++flow.tracked.acknowledged;
    if (flow.retrying) [[unlikely]]
      progress(flow_number, flow);
    if (flow.unsettled == 0) turn_idle(nic, flow_number, flow);
  }
  // Its answer is home, and it was refused for lack of an entry or because another before it was.
  void refused(std::uint32_t packet);
  // Some connection of the NIC at this port is closed or tried again.
  void due(std::uint32_t port);

  // Of the NICs that have sent anything ordered.
  std::map<NicId, NicTrackers> by_nic() const;
  TrackerTotals totals() const;

 private:
  // Of one NIC: the entries in use, and what has been counted.
  struct alignas(64) Table {
    std::uint32_t sources = 0;
    std::uint32_t idle = 0;     // of these: connections that are idle
    std::uint32_t closing = 0;  // and those that are being closed ahead of their time
    std::uint32_t targets = 0;
    std::uint32_t results = 0;
    NicTrackers counted;
  };
  // Of a flow of which packets were refused.
  struct Chain {
    std::vector<std::uint32_t> waiting;  // in the order in which they were sent
    std::size_t refused_now = 0;         // of these: since it was tried last; they come first
    std::uint32_t rounds = 0;            // in which nothing got through
    bool scheduled = false;
  };
  struct Due {
    std::uint32_t flow = 0;
    bool closes = false;  // else it is tried again
  };

  void note_clear(const Flow& flow, std::uint32_t packet) {
    if (packet >= cleared_.size()) cleared_.resize(packet + std::size_t{512});
    cleared_[packet] = flow.tracked.acknowledged;
  }
  bool lacks_entry(NicId nic, std::uint32_t transfer, std::uint32_t flow_number);
  void begin(NicId nic, std::uint32_t flow_number, Flow& flow);
  void open(NicId nic, Flow& flow);
  void turn_idle(NicId nic, std::uint32_t flow_number, Flow& flow);
  void end_idle(std::uint32_t flow_number, Flow& flow);
  // Those that are idle for long enough.
  void expire() {
    if (links_.now_ps() >= first_expiry_ps_) close_idle_until(links_.now_ps());
  }
  void close_idle_until(std::uint64_t at_ps);
  void close(std::uint32_t flow_number);
  void close_ahead(NicId nic);
  void closed(NicId nic, std::uint32_t flow_number);
  PacketKind answer_to(Flow& flow, std::uint32_t packet);
  PacketKind refuse(Flow& flow, std::uint64_t NicTrackers::* why);
  void progress(std::uint32_t flow_number, Flow& flow);
  void review(std::uint32_t flow_number, Flow& flow);
  void try_again(std::uint32_t flow_number);
  std::uint64_t pause_ps(NicId nic, std::uint32_t rounds);
  void schedule(NicId nic, std::uint64_t at_ps, Due due);

  TrackerSpec spec_;
  std::uint64_t seed_;
  Links& links_;
  SharedPool<Packet>& packets_;
  Transfers& transfers_;
  Resends& resends_;
  ResendOutlet& outlet_;
  LargeVector<Table> tables_;           // by NIC
  LargeVector<std::uint32_t> cleared_;  // by packet: what its flow had acknowledged when it was sent
  std::uint32_t first_idle_ = none;     // flows, by the instant at which they turned idle
  std::uint32_t last_idle_ = none;
  std::uint64_t first_expiry_ps_ = never.ps;
  std::map<std::uint32_t, Chain> chains_;               // by flow
  std::map<NicId, std::deque<std::uint32_t>> waiting_;  // transfers that wait for an entry of their source
  std::map<NicId, std::multimap<std::uint64_t, Due>> due_;
  std::uint64_t longest_pause_ps_ = 0;
};

}  // namespace dryfly::fabric
