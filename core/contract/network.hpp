// The contract of a network model: transfers go in, deliveries and acknowledgements come out, in virtual time. The
// network at packet level (core/network/packet) keeps it; a flow model can. Who submits (core/nic, core/storage) knows
// a Carrier, who runs the machine a Network, and both know nothing of how the network moves bytes.
//
// What a network carries as one is a *piece* here: a packet of the network at packet level, as much as a flow model
// likes of its flows. A link is named by the port that drives it: the switches' ports in the order of the topology,
// then one port for each NIC.
//
// core/network/conformance_test.cpp holds every implementation to each promise below.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/unit/unit.hpp"

namespace dryfly {

class NetworkObserver;

enum class TrafficClass : std::uint8_t { dedicated, low_latency, bulk_data, best_effort, scavenger, ethernet };

// What one NIC asks the network to carry to another, or to itself, which uses no link but takes its turn among what
// leaves and comes. `size` is payload; headers are the network's business. A size of zero is
// legal and travels as one piece of headers only.
inline constexpr std::uint32_t flow_limit = 1U << 12;

struct Transfer {
  NicId source;
  NicId target;
  Bytes size;
  // The submitter's name for it, which comes back unchanged. The network never looks at it: any value will do, even one
  // that another transfer under way has.
  std::uint32_t handle = 0;
  TrafficClass traffic_class = TrafficClass::best_effort;
  // Ordered transfers of one source, target, class and flow are delivered in the order of submission, and routed as
  // one. Unordered ones are routed piece by piece and may overtake and be overtaken.
  bool ordered = true;
  std::uint16_t flow = 0;  // below flow_limit; what is at the target, see docs/model/routing.md#what-a-flow-is
  // Memories at both ends, by names that a HostBus has for them; 0: the host's, or not known. No network looks at them.
  std::uint8_t source_memory = 0;
  std::uint8_t target_memory = 0;
};

// What becomes of a transfer. Each is either delivered() once and then acknowledged() once, or it ends in failed()
// once, and after acknowledged() or failed() nothing more is told of it.
//
// All calls come from handlers of the network's own events, at engine.now(): never from within submit() or any other
// call of the network, and never at the instant of submission. They may submit, also to the pair of NICs that they are
// told of. Their order within one instant is fixed by what was submitted when, and is the same in every run.
class TransferSink {
 public:
  virtual ~TransferSink() = default;
  // The last byte is at the target NIC. `switch_hops` counts the switch-to-switch links that the piece delivered last
  // has crossed (0: both NICs on one switch).
  virtual void delivered(std::uint32_t handle, std::uint32_t switch_hops) = 0;
  // The last acknowledgement is back at the source NIC.
  virtual void acknowledged(std::uint32_t handle) = 0;
  // Instead of acknowledged(): the NIC has given the transfer up, as no answer came to any of its retries.
  // `delivered` tells whether delivered() was called before. Only networks with faults do this.
  virtual void failed(std::uint32_t /*handle*/, bool /*delivered*/) {
    DRYFLY_UNREACHABLE("failed(): this network has no faults");
  }
};

// What lies between NICs and the memory of their hosts and may be slower than links are. It is told of the payload of
// each piece of data as it passes a NIC, whoever submitted it, and may keep a NIC from sending.
class HostBus {
 public:
  virtual ~HostBus() = default;
  // Whether it may be slower than links are for any piece of this transfer. It is told of no piece of others.
  virtual bool concerns(const Transfer& /*transfer*/) const { return true; }
  // The last byte of a piece is at the NIC now, for that memory of its host. If it is the last of its transfer,
  // delivered() comes next.
  virtual void took(NicId nic, std::uint8_t memory, Bytes payload, Instant now) = 0;
  // The NIC chooses a piece to send now, from that memory, at an instant at which it may.
  virtual void sends(NicId nic, std::uint8_t memory, Bytes payload, Instant now) = 0;
  // When the NIC may choose the next one.
  virtual Instant may_send(NicId nic) const = 0;
};

// The side of those who submit.
class Carrier {
 public:
  virtual ~Carrier() = default;
  // Once, before the first submission. The sink must outlive the last event.
  virtual void connect(TransferSink& sink) = 0;
  // At most once, before the first submission; the bus must outlive the last event. Without one NICs have from memory
  // what they want.
  virtual void attach(HostBus& bus) = 0;
  // Takes the transfer at engine.now(). Never refuses: what the NIC cannot send yet waits in its queue. A transfer that
  // is against the rules of Transfer, or ordered where takes_ordered() says no, is the caller's bug and ends the
  // process.
  virtual void submit(const Transfer& transfer) = 0;
  // Whether transfers may be ordered: a network in regions keeps no order.
  virtual bool takes_ordered() const = 0;
};

// What faults have done.
struct FaultTotals {
  std::uint64_t network_timeouts = 0;
  std::uint64_t pieces_lost = 0;        // on a link that was down; acknowledgements included
  std::uint64_t pieces_refused = 0;     // by the target: out of sequence
  std::uint64_t pieces_sent_again = 0;  // whatever the reason
  std::uint64_t transfers_failed = 0;
  std::uint64_t link_replays = 0;
};

// What the finite trackers of one NIC have done to flows of ordered pieces: to those that it sent, and the most of its
// entries that were in use at once.
struct NicTrackers {
  std::uint64_t sources_max = 0;  // first, for these are read with each piece
  std::uint64_t targets_max = 0;
  std::uint64_t results_max = 0;
  std::uint64_t connections_opened = 0;
  std::uint64_t source_waits = 0;        // times a flow had to wait for an entry of this NIC
  std::uint64_t target_refusals = 0;     // pieces refused because the target had no entry for the flow
  std::uint64_t result_refusals = 0;     // or none for what becomes of the piece
  std::uint64_t sequence_refusals = 0;   // or because it came behind one that was refused
  std::uint64_t unmatched_refusals = 0;  // the same, of a flow for which the target had no entry
  std::uint64_t pauses = 0;              // before refused pieces were sent again; those of no length left out
};

// Of all NICs: sums, and the most of any.
struct TrackerTotals : NicTrackers {
  std::uint64_t longest_pause_ps = 0;

  void add(const NicTrackers& nic) {
    connections_opened += nic.connections_opened;
    source_waits += nic.source_waits;
    target_refusals += nic.target_refusals;
    result_refusals += nic.result_refusals;
    sequence_refusals += nic.sequence_refusals;
    unmatched_refusals += nic.unmatched_refusals;
    pauses += nic.pauses;
    sources_max = std::max(sources_max, nic.sources_max);
    targets_max = std::max(targets_max, nic.targets_max);
    results_max = std::max(results_max, nic.results_max);
  }
};

struct NetworkTotals {
  std::uint64_t pieces = 0;         // of data, delivered
  std::uint64_t piece_hops = 0;     // these times the links that each has crossed, injection and ejection included
  std::uint64_t payload_bytes = 0;  // of these
  // By class of the machine's profile, in its order.
  std::array<std::uint64_t, 6> pieces_of{};
  std::array<std::uint64_t, 6> bytes_of{};
  FaultTotals faults;
  TrackerTotals trackers;
};

// Network time-outs of one NIC: of flows of ordered pieces, and of unordered pieces.
struct NicTimeouts {
  std::uint64_t ordered = 0;
  std::uint64_t unordered = 0;
};

// What of a NIC only the network knows: how its packets fared end to end, and how long the switch had no room for what
// it had to send.
struct NicAccount {
  NicTimeouts timeouts;
  std::uint64_t refusals = 0;         // answers that refused a piece, back at the NIC
  std::uint64_t sequence_errors = 0;  // of these: for it came out of sequence
  std::uint64_t sent_again = 0;       // pieces, whatever the reason
  std::uint64_t flows_given_up = 0;
  std::uint64_t ordered_given_up = 0;  // pieces
  std::uint64_t unordered_given_up = 0;
  std::array<std::uint64_t, 6> without_room_ps{};  // by TrafficClass; of those that travel as one, all under one
};

// How a link that faults concern has fared from the start to some instant, and how it is then.
struct LinkHealth {
  enum class State : std::uint8_t { up, fewer_lanes, drained, down };
  std::uint32_t port = 0;  // that drives the link
  State state = State::up;
  std::uint64_t times_down = 0;
  std::uint64_t down_ps = 0;
  std::uint64_t fewer_lanes_ps = 0;
  std::uint64_t drained_ps = 0;  // ordered out of the routes; from some time on also down
  std::uint64_t signal_ps = 0;   // it was not down, where a lane less counts for a lane less of the time
  std::uint64_t pieces_lost = 0;
  std::uint64_t replays = 0;

  bool has_had_trouble() const {
    return state != State::up || (down_ps | fewer_lanes_ps | drained_ps | pieces_lost | replays) != 0;
  }
};

// The side of whoever runs the machine. A network handles the events of ComponentClass::fabric of its engine; both must
// outlive what has been submitted. No call but restart() and end_faults() changes what becomes of a transfer.
class Network : public Carrier {
 public:
  // Nothing is under way: every transfer acknowledged or failed, every credit back at its sender. While it is at rest
  // no event of its own is told to the sink.
  virtual bool at_rest() const = 0;
  // The network becomes as newly built, and its totals zero, so that what follows does not depend on what has been.
  // Faults that the spec tells of count from `start`; before, only links that are absent for good make a difference.
  // Before: at_rest(), and `start` is not before engine.now().
  virtual void restart(Instant start) = 0;
  // No fault begins any more and those that there are have ended; what was lost before is still sent again.
  virtual void end_faults() = 0;

  // Since it was built or restarted.
  virtual NetworkTotals totals() const = 0;
  // Of the NICs that have sent or taken ordered pieces; empty where the spec has no trackers.
  virtual std::map<NicId, NicTrackers> trackers_by_nic() const = 0;
  // Of the NICs of which there is anything to say, as of `until`. The sums of their time-outs and of what they sent
  // again are those of the totals.
  virtual std::map<NicId, NicAccount> nic_accounts(Instant until) const = 0;
  // Of every link that faults of the spec concern, by port, from `start` to `until`; empty without faults.
  virtual std::vector<LinkHealth> link_health(Instant until) const = 0;

  // Two of these NICs that what is absent for good has cut off from each other, or of which one has no cable.
  virtual std::optional<std::pair<NicId, NicId>> cut_off(const std::vector<NicId>& nics) const = 0;
  // One of these NICs whose link a drain in the spec takes out, and the field of the spec that says so.
  virtual std::optional<std::pair<NicId, std::string>> drained(const std::vector<NicId>& nics) const = 0;

  // From now on the observer is told of every piece on every link; nullptr: nobody is. It watches and changes nothing.
  virtual void observe(NetworkObserver* observer) = 0;
};

}  // namespace dryfly
