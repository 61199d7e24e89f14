// The contract of a network model: transfers go in, deliveries and acknowledgements come out, in virtual time.
// Two models stand behind it: packets (core/network/packet) and, later, flows. Those who submit (core/nic) know
// neither.
#pragma once

#include <array>
#include <cstdint>

#include "core/unit/unit.hpp"

namespace dryfly {

enum class TrafficClass : std::uint8_t { dedicated, low_latency, bulk_data, best_effort, scavenger, ethernet };

// What one NIC asks the network to carry to another. `handle` is the submitter's name for it and comes back
// unchanged in both calls of the sink. `size` is payload; headers are the network's business. A size of zero is
// legal and travels as one packet of headers only.
struct Transfer {
  NicId source;
  NicId target;
  Bytes size;
  std::uint32_t handle = 0;
  TrafficClass traffic_class = TrafficClass::best_effort;
  // Ordered transfers of one (source, target) pair are delivered in the order of submission; they are routed per
  // flow. Unordered ones are routed per packet and may overtake.
  bool ordered = true;
};

// Handles with all these bits set are of traffic beside the job's (core/storage); nobody else gives such.
inline constexpr unsigned background_bits = 4;
inline constexpr std::uint32_t background_mark = (1U << background_bits) - 1;

class TransferSink {
 public:
  virtual ~TransferSink() = default;
  // The last byte is at the target NIC at engine.now(). `switch_hops` counts the switch-to-switch links that the
  // packet delivered last has crossed (0: both NICs on one switch).
  virtual void delivered(std::uint32_t handle, std::uint32_t switch_hops) = 0;
  // The last acknowledgement is back at the source NIC at engine.now().
  virtual void acknowledged(std::uint32_t handle) = 0;
  // Instead of acknowledged(): the NIC has given the transfer up, as no answer came to any of its retries.
  // `delivered` tells whether delivered() was called before. Only networks with faults do this.
  virtual void failed(std::uint32_t /*handle*/, bool /*delivered*/) { DRYFLY_CHECK(!"a transfer can fail here"); }
};

// What faults have done.
struct FaultTotals {
  std::uint64_t network_timeouts = 0;
  std::uint64_t packets_lost = 0;     // on a link that was down; acknowledgements included
  std::uint64_t packets_refused = 0;  // by the target: out of sequence
  std::uint64_t packets_sent_again = 0;
  std::uint64_t transfers_failed = 0;
  std::uint64_t link_replays = 0;
};

// Network time-outs of one NIC: of flows of ordered packets, and of unordered packets.
struct NicTimeouts {
  std::uint64_t ordered = 0;
  std::uint64_t unordered = 0;
};

struct NetworkTotals {
  std::uint64_t packets = 0;      // data packets delivered
  std::uint64_t packet_hops = 0;  // data packets times links crossed, injection and ejection included
  std::uint64_t payload_bytes = 0;
  // By class of the machine's profile, in its order.
  std::array<std::uint64_t, 6> packets_of{};
  std::array<std::uint64_t, 6> bytes_of{};
  FaultTotals faults;
};

class Network {
 public:
  virtual ~Network() = default;
  virtual void connect(TransferSink& sink) = 0;
  // Takes the transfer at engine.now(). Never refuses: what the NIC cannot send yet waits in its queue.
  virtual void submit(const Transfer& transfer) = 0;
  virtual NetworkTotals totals() const = 0;
  // True when nothing is in flight: every packet delivered, every acknowledgement home, every credit returned.
  virtual bool at_rest() const = 0;
};

}  // namespace dryfly
