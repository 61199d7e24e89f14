// The NICs' side of the fabric. Egress cuts transfers into packets, one packet of each transfer in turn, and keeps at
// most a window of packets unacknowledged; ingress counts, and sends an acknowledgement for each packet.
//
// Models the outstanding-packet limit of Cassini (fact sheet B3: 64) as one window for each NIC, and acknowledgement
// frames that occupy links (G, "control traffic"). A packet's acknowledgement starts when its last byte is there and
// goes before data of the same NIC that is not yet committed. Leaves out: retries, traffic classes, coalescing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/network.hpp"
#include "core/fabric/fabric_spec.hpp"
#include "core/fabric/links.hpp"
#include "core/fabric/packet.hpp"
#include "core/fabric/pool.hpp"
#include "core/fabric/transfers.hpp"

namespace dryfly::fabric {

class NicPorts {
 public:
  NicPorts(std::uint32_t nics, const FabricSpec& fabric, Links& links, Pool<Packet>& packets, Transfers& transfers);

  void connect(TransferSink& sink) { sink_ = &sink; }
  void submit(const Transfer& asked);
  // The last byte of a packet has come in.
  void deliver(std::uint32_t port, std::uint32_t packet);
  // An acknowledgement is home.
  void acknowledge(std::uint32_t port, std::uint32_t packet);
  // The link or a credit is free.
  void wake(std::uint32_t port);

  const NetworkTotals& totals() const { return totals_; }

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

  Links& links_;
  Pool<Packet>& packets_;
  Transfers& transfers_;
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
