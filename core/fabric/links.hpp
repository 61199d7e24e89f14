// The links: serialisation, flight and credits. A link is one direction of a cable and is named by the port that
// drives it; ports of switches have the ids of the topology, those of NICs follow. Also the words in which the parts
// of the fabric speak to the engine.
//
// Models links of one rate that carry a packet whole (fact sheet B2). A packet of b bytes occupies a link for
// ceil(b / rate) picoseconds, rounded up once per packet, the same on every link; its head arrives one flight time
// after its start. A port of which a scenario says that something is wrong has a number of trouble: LinkFaults says
// then how much longer a packet takes and whether it is lost.
//
// An output grants early: it commits the next packet while at most one largest packet is left to send of what it
// has committed before, as a pipelined request/grant arbiter does, and looks again when half a packet is left. So
// links stay busy and most packets need a single event at each switch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/fabric/credits.hpp"
#include "core/fabric/fabric_spec.hpp"
#include "core/fabric/link_faults.hpp"
#include "core/fabric/packet.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::fabric {

// At one instant: heads enter switches, packets are delivered, acknowledgements come home, outputs look again. What
// comes over a link in trouble has the trouble bit too and may have been lost on the way; a retry has only this bit.
enum class EventKind : std::uint8_t { head_at_switch, packet_at_nic, acknowledgement_at_nic, output_wakes, retry_due };
inline constexpr std::uint64_t trouble_bit = std::uint64_t{1} << 59;

// Bits 58..56 of an event's key are the kind, 55..32 the port where it happens, 31..0 the packet. A port passes one
// head at an instant, so kind and port order the events alone and the number of a packet never decides.
constexpr std::uint64_t event_key(EventKind kind, std::uint32_t port, std::uint32_t packet) {
  return (static_cast<std::uint64_t>(ComponentClass::fabric) << component_class_shift) |
         (static_cast<std::uint64_t>(kind) << 56) | (static_cast<std::uint64_t>(port) << 32) | packet;
}
constexpr EventKind kind_of(Event event) { return static_cast<EventKind>((event.key >> 56) & 0x7); }
constexpr std::uint32_t port_of(Event event) { return static_cast<std::uint32_t>((event.key >> 32) & 0xffffff); }
constexpr std::uint32_t packet_of(Event event) { return static_cast<std::uint32_t>(event.key); }

// Virtual channels are classes of hops: the link between the i-th and the next switch of a path uses channel i, the
// link from a NIC channel 0. A packet waits only for room in a higher channel, so no circle of waiting can close.
inline constexpr std::uint32_t channel_count = most_switches - 1;
// By their place on the path: the channel by which a packet comes to a switch, and that by which it goes on.
constexpr std::uint32_t channel_in(std::uint32_t place) { return place == 0 ? 0 : place - 1; }
constexpr std::uint32_t channel_out(std::uint32_t place) { return place; }

struct alignas(64) Port {
  std::uint64_t busy_until_ps = 0;      // end of what is committed
  std::uint64_t wake_at_ps = never.ps;  // the wake-up that counts; others have been overtaken
  std::uint64_t waiting_ps = 0;         // transmission time of the packets that wait
  std::uint32_t waiting = 0;            // and their number; of a NIC: transfers that wait for link or credit
  std::uint32_t queues = none;          // where they wait, see OutputQueues
  std::uint32_t flight_ps = 0;
  std::uint32_t peer = none;     // the port at the other end
  std::uint32_t first_port = 0;  // of the switch it belongs to
  bool leads_to_nic = false;
  std::uint32_t trouble = none;    // number in LinkFaults
  std::uint64_t trouble_bits = 0;  // of the events at the other end
};

class Links {
 public:
  Links(Engine& engine, const Dragonfly& dragonfly, const FabricSpec& fabric, const Spec& spec);

  std::uint64_t now_ps() const { return engine_.now().ps; }
  Port& operator[](std::uint32_t port) { return ports_[port]; }
  const Port& operator[](std::uint32_t port) const { return ports_[port]; }
  std::uint32_t nic_port(NicId nic) const { return first_nic_port_ + nic.value; }
  bool is_nic_port(std::uint32_t port) const { return port >= first_nic_port_; }
  NicId nic_of(std::uint32_t port) const { return {port - first_nic_port_}; }

  std::uint64_t frame_max_ps() const { return frame_max_ps_; }
  // Whether the port may commit a packet that has just come, and whether one more after that.
  bool accepts(const Port& port) const { return port.busy_until_ps <= now_ps() + frame_max_ps_; }
  bool wants_more(const Port& port) const { return port.busy_until_ps <= now_ps() + frame_max_ps_ / 2; }

  void trouble(LinkFaults& faults) { faults_ = &faults; }
  LinkFaults* faults() { return faults_; }

  // Puts a packet behind what is committed; returns the instant of its first byte. On a link in trouble that is the
  // instant at which a link in order would have to begin to be done at the same time.
  std::uint64_t commit(Port& port, std::uint32_t transmission_ps) const {
    std::uint64_t start_ps = std::max(port.busy_until_ps, now_ps());
    if (port.trouble != none) [[unlikely]]
      start_ps += delay_ps(port, start_ps, transmission_ps);
    port.busy_until_ps = start_ps + transmission_ps;
    return start_ps;
  }
  // The head reaches the output stage of the switch at the other end a flight time and a switch latency later.
  void schedule_head_at_switch(const Port& from, std::uint64_t start_ps, std::uint32_t packet) {
    engine_.schedule(Instant{start_ps + from.flight_ps + switch_latency_ps_},
                     event_key(EventKind::head_at_switch, from.peer, packet) | from.trouble_bits);
  }
  // A NIC counts a packet when its last byte is there.
  void schedule_at_nic(const Port& from, std::uint64_t end_ps, EventKind kind, std::uint32_t packet) {
    engine_.schedule(Instant{end_ps + from.flight_ps}, event_key(kind, from.peer, packet) | from.trouble_bits);
  }
  // Of a packet that comes in by this port now: whether its link was down while any of it was on the wire.
  bool lost(EventKind kind, std::uint32_t port, std::uint32_t transmission_ps);
  // The packet missed at this port had taken credit of the port at the other end; nothing was ever stored.
  void return_lost_credit(std::uint32_t port, std::uint32_t channel, std::uint32_t bytes) {
    const std::uint32_t sender = ports_[port].peer;
    return_credit(sender, channel, bytes, now_ps());
    if (ports_[sender].waiting > 0) wake(sender, now_ps());
  }
  // The NIC of the port looks at the packet again at this instant.
  void schedule_retry(std::uint32_t port, std::uint64_t at_ps, std::uint32_t packet) {
    engine_.schedule(Instant{at_ps}, event_key(EventKind::retry_due, port, packet) | trouble_bit);
  }

  bool has_credit(std::uint32_t port, std::uint32_t channel) { return credits_.ready(line(port, channel), now_ps()); }
  void take_credit(std::uint32_t port, std::uint32_t channel, std::uint32_t bytes) {
    credits_.take(line(port, channel), bytes);
  }
  void return_credit(std::uint32_t port, std::uint32_t channel, std::uint32_t bytes, std::uint64_t at_ps) {
    credits_.give_back(line(port, channel), bytes, at_ps, now_ps());
  }
  std::uint64_t credit_at_ps(std::uint32_t port, std::uint32_t channel) {
    return credits_.ready_at(line(port, channel), now_ps());
  }
  std::uint64_t credits_outstanding() { return credits_.outstanding(now_ps()); }

  // The port is to look again at `credit_ps` or when it wants more, whichever is later, unless it will do so before;
  // with `never` nothing is known yet, and the return of a credit will wake it.
  void wake(std::uint32_t port, std::uint64_t credit_ps);

 private:
  static std::size_t line(std::uint32_t port, std::uint32_t channel) {
    return std::size_t{port} * channel_count + channel;
  }
  void schedule(std::uint64_t at_ps, EventKind kind, std::uint32_t port, std::uint32_t packet) {
    engine_.schedule(Instant{at_ps}, event_key(kind, port, packet));
  }
  void add_extra_flights(const Dragonfly& dragonfly, const Spec& spec);
  [[gnu::cold, gnu::noinline]] std::uint64_t delay_ps(const Port& port, std::uint64_t start_ps,
                                                      std::uint32_t transmission_ps) const;

  Engine& engine_;
  LinkFaults* faults_ = nullptr;
  std::uint64_t frame_max_ps_;
  std::uint64_t switch_latency_ps_;
  std::uint32_t first_nic_port_;
  std::vector<Port> ports_;
  Credits credits_;
};

}  // namespace dryfly::fabric
