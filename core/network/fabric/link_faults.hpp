// What is wrong with which link at which instant. A scenario is known from the beginning, so this is a function of
// the instant: nothing is scheduled, and a run without a scenario has none of it.
//
// A link that is down eats what it is given: its port goes on sending, and what is on the wire at any moment of the
// down time is lost, packets and acknowledgements alike. The receiver's buffer never sees them, so their credits
// come back. That a port whose link is down discards is assumed; published is how long a retune takes
// (docs/model/reliability.md#flaps). On a part of its lanes a link takes longer for a packet, and the switch behind
// it holds the head back until the tail can follow without a gap. A link-level replay costs a round trip on the wire
// and the frame again. What others have of a link leaves it as much slower, and no packet of theirs is there to wait
// for. Leaves out: pre-emptive loss of a lane by errors, the window in which replays are tried.
#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/network.hpp"
#include "core/network/fabric/fault_plan.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/unit/random.hpp"

namespace dryfly::fabric {

class LinkFaults {
 public:
  // Instants of the plan count from `start`. Only of the ports that the plan concerns may anything be asked.
  LinkFaults(const FaultPlan& plan, const Wiring& wiring, Instant start);

  bool concerns(std::uint32_t port) const { return number_of_[port] != none; }
  std::vector<std::uint32_t> ports() const;

  // How much longer than on a link in order the packet is on this one, which it enters at `start_ps`.
  std::uint64_t delay_ps(std::uint32_t port, std::uint64_t start_ps, std::uint64_t transmission_ps);
  // How many links in order this one is worth on average to packets that begin at that instant: fewer lanes, replays
  // and what others have of it.
  double worth(std::uint32_t port, std::uint64_t at_ps, std::uint64_t transmission_ps) const;
  // The instants, in order, at which something of the plan begins or ends, and at which the routes have learned of it.
  std::vector<std::uint64_t> changes() const;
  // Whether a moment of the span is down time.
  bool down_during(std::uint32_t port, std::uint64_t from_ps, std::uint64_t to_ps);
  bool down_at(std::uint32_t port, std::uint64_t at_ps) { return down_during(port, at_ps, at_ps); }
  // Whether every route has known for ever that the link is not there.
  bool absent(std::uint32_t port) const { return links_[number_of_[port]].absent; }
  // Whether by this instant the order was given to take the link out of the routes, and not yet taken back.
  bool ordered_out(std::uint32_t port, std::uint64_t at_ps) const;
  // Packets were on the link when it was down.
  void note_loss(std::uint32_t port, std::uint64_t packets = 1) { links_[number_of_[port]].packets_lost += packets; }
  // Of every link that is there and that the plan concerns, by port. Draws the flaps until then.
  std::vector<LinkHealth> health(std::uint64_t until_ps);
  // From now on every link is in order.
  void end() { ended_ = true; }

  std::uint64_t replays() const { return replays_; }
  Instant start() const { return start_; }
  const Sweeps& sweeps() const { return sweeps_; }
  // The instant whose state the routes in force at `at_ps` were made from, of what the topology sweep finds and of
  // what the operator orders.
  std::uint64_t seen_ps(std::uint64_t at_ps) const;
  std::uint64_t orders_seen_ps(std::uint64_t at_ps) const;

 private:
  struct Span {
    std::uint64_t from_ps = 0;
    std::uint64_t until_ps = never.ps;
  };
  struct LaneSpan {
    Span span;
    std::uint32_t lanes = 4;
  };
  struct RateSpan {
    Span span;
    std::uint64_t rate_ppb = 0;
    std::uint64_t least_ps = 0;
    std::uint64_t most_ps = 0;
    std::uint64_t next_second = 0;  // of flaps: drawn so far
  };
  struct Link {
    bool absent = false;
    std::uint32_t cable = 0;  // the smaller of its two ports: both directions flap together
    std::uint32_t port = 0;
    std::uint32_t flight_ps = 0;
    std::uint64_t packets = 0;  // names the draws of replays
    std::uint64_t packets_lost = 0;
    std::uint64_t replayed = 0;
    std::vector<Span> down;
    std::vector<Span> drains;
    std::vector<LaneSpan> lanes;
    std::vector<RateSpan> loads;
    std::vector<RateSpan> replays;
    std::vector<RateSpan> flaps;
  };

  void add(const Fault& fault, const FaultPlan& plan, std::uint32_t port, const Wiring& wiring);
  // How long there was a signal, a missing lane counting for its part.
  std::uint64_t signal_ps(const Link& link, std::uint64_t until_ps) const;
  void draw_flaps_until(Link& link, RateSpan& flaps, std::uint64_t at_ps);
  std::uint64_t drain_done_ps(std::uint64_t ordered_ps, std::uint64_t packet_age_ps) const;

  Instant start_;
  Sweeps sweeps_;
  std::uint64_t seed_;
  bool ended_ = false;
  std::uint64_t replays_ = 0;
  std::vector<Link> links_;
  std::vector<std::uint32_t> number_of_;  // in links_, by port
};

}  // namespace dryfly::fabric
