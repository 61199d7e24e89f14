// The NICs' side of the fabric. Egress cuts transfers into packets, one packet of each transfer in turn, and keeps at
// most a window of packets unacknowledged; ingress counts, and sends an acknowledgement for each packet.
//
// Models the outstanding-packet limit of Cassini (fact sheet B3: 64) as one window for each NIC, and acknowledgement
// frames that occupy links (G, "control traffic"). A packet's acknowledgement starts when its last byte is there and
// goes before data of the same NIC that is not yet committed. What is lost is sent again by Retry. Leaves out: traffic
// classes, coalescing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/contract/network.hpp"
#include "core/fabric/fabric_spec.hpp"
#include "core/fabric/links.hpp"
#include "core/fabric/packet.hpp"
#include "core/fabric/pool.hpp"
#include "core/fabric/retry.hpp"
#include "core/fabric/transfers.hpp"

namespace dryfly::fabric {

class NicPorts final : private RetryOutlet {
 public:
  NicPorts(std::uint32_t nics, const FabricSpec& fabric, Links& links, Pool<Packet>& packets, Transfers& transfers);

  void connect(TransferSink& sink) { sink_ = &sink; }
  // Packets may get lost from now on.
  void retry_by(const RetrySchedule& schedule) {
    retry_ = std::make_unique<Retry>(schedule, links_, packets_, transfers_, static_cast<RetryOutlet&>(*this));
  }
  Retry* retry() { return retry_.get(); }
  void submit(const Transfer& asked);
  // The last byte of a packet has come in.
  void deliver(std::uint32_t port, std::uint32_t packet);
  // An acknowledgement is home.
  void acknowledge(std::uint32_t port, std::uint32_t packet);
  // The link or a credit is free.
  void wake(std::uint32_t port);

  NetworkTotals totals() const;
  std::uint32_t ack_ps() const { return ack_ps_; }

 private:
  struct Egress {
    std::uint32_t first_turn = none;  // transfers with packets to send
    std::uint32_t last_turn = none;
    std::uint32_t in_flight = 0;  // packets sent and not acknowledged
    std::uint32_t sequence = 0;   // packets sent ever, modulo 2^32
  };

  void send(NicId nic);
  void send_packet(NicId nic);
  void append_turn(Egress& egress, std::uint32_t transfer);
  void pass_turn(Egress& egress);
  bool has_work(NicId nic) const {
    return nics_[nic.value].first_turn != none || (retry_ != nullptr && retry_->next_of(nic) != none);
  }
  // What the retries have to do before a packet is sent for the first time: true if that was something.
  bool retry_step(NicId nic);
  void answer(std::uint32_t port, std::uint32_t packet) {
    packets_[packet].is_acknowledgement = true;
    Port& link = links_[port];
    links_.schedule_head_at_switch(link, links_.commit(link, ack_ps_), packet);
  }

  void leave_window(NicId nic) override { --nics_[nic.value].in_flight; }
  void resume(NicId nic) override { send(nic); }
  void release(std::uint32_t packet) override;
  void undeliverable(std::uint32_t handle, bool delivered) override { sink_->failed(handle, delivered); }

  Links& links_;
  Pool<Packet>& packets_;
  Transfers& transfers_;
  std::unique_ptr<Retry> retry_;  // with faults only
  TransferSink* sink_ = nullptr;
  std::vector<Egress> nics_;
  NetworkTotals totals_;
  Bytes payload_max_;
  Bytes header_;
  Rate rate_;
  std::uint32_t window_packets_;
  std::uint32_t frame_max_ps_;
  std::uint32_t ack_ps_;
};

}  // namespace dryfly::fabric
