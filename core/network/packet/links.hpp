// The links: serialisation, flight and credits. A link is one direction of a cable and is named by the port that
// drives it; ports of switches have the ids of the topology, those of NICs follow. Also the words in which the parts
// of the fabric speak to the engine.
//
// Models links of one rate that carry a packet whole (docs/model/links.md#link-rate,
// docs/model/links.md#frame-sizes). A packet of b bytes occupies a link for ceil(b / rate) picoseconds, rounded up
// once per packet, the same on every link; its head arrives one flight time after its start. Each traffic class has
// virtual channels, with buffers and credits, of its own; those of a class are made when a transfer of it first
// comes. Of a port in trouble LinkFaults says how much longer a packet takes and whether it is lost.
//
// An output grants early: it commits the next packet while at most one largest packet is left to send of what it
// has committed before, as a pipelined request/grant arbiter does, and looks again when half a packet is left. So
// links stay busy and most packets need a single event at each switch.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/link_faults.hpp"
#include "core/network/fabric/qos.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/network/packet/credits.hpp"
#include "core/network/packet/packet.hpp"
#include "core/network/packet/region.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/fetch.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/random.hpp"

namespace dryfly::fabric {

// At one instant: heads enter switches, packets are delivered, acknowledgements come home, outputs look again; the head
// of a packet that a NIC sends to itself is at that NIC; connections of a NIC are closed or tried again. What comes
// over a link in trouble has the trouble bit too and may have been lost on the way; a retry always has it.
enum class EventKind : std::uint8_t {
  head_at_switch,
  packet_at_nic,
  acknowledgement_at_nic,
  output_wakes,
  hold_over,
  retry_due,
  looped_head,
  connection_due
};
inline constexpr unsigned trouble_shift = 59;

// Bits 58..56 of an event's key are the kind, 55..32 the port where it happens, 31..0 the packet. A port passes one
// head at an instant, so kind and port order the events alone and the number of a packet never decides. When a hold
// is over, the place of the packet is taken by class and target NIC.
constexpr std::uint64_t event_key(EventKind kind, std::uint32_t port, std::uint32_t packet) {
  return (static_cast<std::uint64_t>(ComponentClass::fabric) << component_class_shift) |
         (static_cast<std::uint64_t>(kind) << 56) | (static_cast<std::uint64_t>(port) << 32) | packet;
}
constexpr EventKind kind_of(Event event) { return static_cast<EventKind>((event.key >> 56) & 0x7); }
constexpr bool of_trouble(Event event) { return ((event.key >> trouble_shift) & 1) != 0; }
constexpr std::uint32_t port_of(Event event) { return static_cast<std::uint32_t>((event.key >> 32) & 0xffffff); }
constexpr std::uint32_t packet_of(Event event) { return static_cast<std::uint32_t>(event.key); }

// By their place on the path: the channel by which a packet comes to a switch, and that by which it goes on.
constexpr std::uint32_t channel_in(std::uint32_t place) { return place == 0 ? 0 : place - 1; }
constexpr std::uint32_t channel_out(std::uint32_t place) { return place; }

struct alignas(64) Port {
  std::uint64_t busy_until_ps = 0;      // end of what is committed
  std::uint64_t wake_at_ps = never.ps;  // the wake-up that counts; others have been overtaken
  std::uint64_t waiting_ps = 0;         // transmission time of the packets that wait
  std::uint64_t last_head_ps = 0;       // when the head sent last comes out of the switch at the other end
  std::uint32_t waiting = 0;            // and their number; of a NIC: transfers that wait for link or credit
  std::uint32_t queues = none;          // where they wait, see OutputQueues
  std::uint32_t flight_ps = 0;
  std::uint32_t peer = none;          // the port at the other end
  std::uint32_t first_port = 0;       // of the switch it belongs to
  std::uint32_t hot = none;           // of a port to a NIC: the account of a hot end-point, see congestion.hpp
  std::uint64_t sent_bytes : 55 = 0;  // of data frames
  std::uint64_t classes : 6 = 0;      // of which packets wait at a switch, as bits
  bool in_trouble : 1 = false;        // LinkFaults knows what is wrong
  bool leads_to_nic : 1 = false;
  bool is_global : 1 = false;
};
static_assert(sizeof(Port) == 64);

// When a port would be done with all it had, at two instants at least one staleness apart.
struct Told {
  std::uint64_t at_ps = 0;
  std::uint64_t done_ps = 0;
  std::uint64_t before_at_ps = 0;
  std::uint64_t before_done_ps = 0;
};

class Links {
 public:
  // Fills what the regions share if nobody has yet.
  Links(Engine& engine, const Dragonfly& dragonfly, const FabricSpec& fabric, const Spec& spec,
        const Region& region = {});

  std::uint64_t now_ps() const { return engine_.now().ps; }
  Port& operator[](std::uint32_t port) { return ports_[port]; }
  const Port& operator[](std::uint32_t port) const { return ports_[port]; }
  std::uint32_t nic_port(NicId nic) const { return first_nic_port_ + nic.value; }
  std::size_t count() const { return port_count_; }
  bool is_nic_port(std::uint32_t port) const { return port >= first_nic_port_; }
  NicId nic_of(std::uint32_t port) const { return {port - first_nic_port_}; }

  std::uint64_t frame_max_ps() const { return frame_max_ps_; }
  // Of the switch that the packet reaches next.
  std::uint64_t latency_ps(const Packet& packet) const {
    if (latency_values_ == 1) return latency_least_ps_;
    return latency_least_ps_ + ((mix(packet.draw ^ latency_stream(packet)) >> 32) * latency_values_ >> 32);
  }
  // Whether the port may commit a packet that has just come, and whether one more after that.
  bool accepts(const Port& port) const { return port.busy_until_ps <= now_ps() + frame_max_ps_; }
  bool wants_more(const Port& port) const { return port.busy_until_ps <= now_ps() + frame_max_ps_ / 2; }

  void hand_to(LinkFaults& faults) {
    faults_ = &faults;
    for (const std::uint32_t port : faults.ports()) ports_[port].in_trouble = true;
  }

  // Puts a packet behind what is committed; returns the instant of its first byte. On a link in trouble that is the
  // instant at which a link in order would have to begin to be done at the same time.
  std::uint64_t commit(Port& port, std::uint32_t transmission_ps) const {
    if (port.in_trouble) [[unlikely]]
      return commit_in_trouble(port, transmission_ps);
    const std::uint64_t start_ps = std::max(port.busy_until_ps, now_ps());
    port.busy_until_ps = start_ps + transmission_ps;
    return start_ps;
  }
  // The head reaches the output stage of the switch at the other end a flight time and a switch latency later. The
  // latency is drawn for each packet and switch; heads that come by one link stay in order.
  void schedule_head_at_switch(Port& from, std::uint64_t start_ps, std::uint32_t index, const Packet& packet) {
    const std::uint64_t at_ps = std::max(start_ps + from.flight_ps + latency_ps(packet), from.last_head_ps + 1);
    from.last_head_ps = at_ps;
    if (is_far(from)) return send_far(from, {at_ps, event_key(EventKind::head_at_switch, from.peer, index)});
    schedule(at_ps, EventKind::head_at_switch, from.peer, index, from.in_trouble);
  }
  // A NIC counts a packet when its last byte is there.
  void schedule_at_nic(const Port& from, std::uint64_t end_ps, EventKind kind, std::uint32_t packet) {
    schedule(end_ps + from.flight_ps, kind, from.peer, packet, from.in_trouble);
  }
  // Of a packet that is within its NIC, at this port of that NIC or of the switch before it: it loops, or the NIC looks
  // at it again to send it once more.
  void schedule_in_nic(std::uint32_t port, std::uint64_t at_ps, EventKind kind, std::uint32_t packet) {
    schedule(at_ps, kind, port, packet, kind == EventKind::retry_due);
  }
  // Of a packet that comes in by this port now: whether its link was down while any of it was on the wire.
  bool lost(EventKind kind, std::uint32_t port, const Packet& packet, std::uint32_t transmission_ps);
  // The packet missed at this port had taken credit of the port at the other end; nothing was ever stored.
  void return_lost_credit(std::uint32_t port, const Packet& packet);
  void prefetch(std::uint32_t port) const { fetch_line(&ports_[port]); }
  void prefetch_credit(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t channel) const {
    credits_[traffic_class].prefetch(line(port, channel));
  }

  // A transfer of this class is about to come.
  void open(std::uint32_t traffic_class);
  // At an instant that may be never.
  void schedule_end_of_hold(std::uint32_t port, std::uint32_t traffic_class, NicId target, std::uint64_t at_ps) {
    if (at_ps != never.ps) schedule(at_ps, EventKind::hold_over, port, (traffic_class << 24) | target.value);
  }

  bool has_credit(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t channel) {
    return credits_[traffic_class].ready(line(port, channel), now_ps());
  }
  void take_credit(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t channel, std::uint32_t bytes) {
    credits_[traffic_class].take(line(port, channel), bytes);
  }
  void return_credit(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t channel, std::uint32_t bytes,
                     std::uint64_t at_ps) {
    credits_[traffic_class].give_back(line(port, channel), bytes, at_ps, now_ps());
  }
  bool in_regions() const { return region_.is_part; }
  // Whether the port at the other end is of another region.
  bool is_far(const Port& port) const { return region_.is_part && port.is_global; }
  void return_credit_far(const Port& port, std::uint32_t traffic_class, std::uint32_t channel, std::uint32_t bytes,
                         std::uint64_t at_ps) {
    send_far(port, {at_ps, event_key(EventKind::head_at_switch, port.peer, 0), bytes,
                    static_cast<std::uint8_t>(traffic_class), static_cast<std::uint8_t>(channel)});
  }
  // An event from another region.
  void schedule_from_far(const Crossing& crossing) { engine_.schedule(Instant{crossing.at_ps}, crossing.key); }
  std::uint64_t credit_at_ps(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t channel) {
    return credits_[traffic_class].ready_at(line(port, channel), now_ps());
  }
  std::uint64_t credits_outstanding();

  // Data frames sent by a port, by class. Nearly all traffic is of the first class to come: it is what the others
  // leave of the sum.
  void count(Port& port, std::uint32_t id, std::uint32_t traffic_class, std::uint32_t bytes) {
    port.sent_bytes += bytes;
    if (traffic_class != region_.shared->first_class) region_.shared->other_bytes[traffic_class][id] += bytes;
  }
  std::uint64_t sent_bytes(std::uint32_t port, std::uint32_t traffic_class) const;

  // The time that a port needs for what it has committed and what waits for it.
  std::uint64_t queued_ps(const Port& port) const {
    return port.waiting_ps + (port.busy_until_ps > now_ps() ? port.busy_until_ps - now_ps() : 0);
  }
  // What other switches know of that: as it was at least one staleness ago.
  std::uint64_t told_ps(std::uint32_t port) const;
  // The load of a port has changed: what it tells, it takes note of at most once in a staleness.
  void note_load(const Port& port, std::uint32_t id) {
    if (!port.is_global) return;
    Told& told = told_[id];
    if (now_ps() - told.at_ps < staleness_ps_) return;
    told.before_at_ps = told.at_ps;
    told.before_done_ps = told.done_ps;
    told.at_ps = now_ps();
    told.done_ps = now_ps() + queued_ps(port);
  }

  // The port is to look again at `credit_ps` or when it wants more, whichever is later, unless it will do so before;
  // with `never` nothing is known yet, and the return of a credit will wake it.
  void wake(std::uint32_t port, std::uint64_t credit_ps);

 private:
  // Names the draw of a latency: by the place on the way, out and home.
  static std::uint64_t latency_stream(const Packet& packet) {
    return static_cast<std::uint64_t>(1 + packet.place + 16 * static_cast<unsigned>(packet.kind)) << 32;
  }
  [[gnu::cold, gnu::noinline]] std::uint64_t commit_in_trouble(Port& port, std::uint32_t transmission_ps) const;
  static std::size_t line(std::uint32_t port, std::uint32_t channel) {
    return std::size_t{port} * channel_count + channel;
  }
  void schedule(std::uint64_t at_ps, EventKind kind, std::uint32_t port, std::uint32_t packet, bool trouble = false) {
    engine_.schedule(Instant{at_ps}, event_key(kind, port, packet) | std::uint64_t{trouble} << trouble_shift);
  }
  void send_far(const Port& from, const Crossing& crossing) const {
    const auto port = static_cast<std::size_t>(&from - ports_);
    (*region_.outbox)[region_.shared->group_behind[port]].push_back(crossing);
  }
  void connect_ports(const Dragonfly& dragonfly, const Wiring& wiring);

  Engine& engine_;
  LinkFaults* faults_ = nullptr;
  std::uint64_t frame_max_ps_;
  std::uint64_t latency_least_ps_;
  std::uint64_t latency_values_;  // how many latencies there are, a picosecond apart
  std::uint64_t staleness_ps_;
  Bytes input_buffer_;
  Bytes frame_max_;
  std::uint32_t first_nic_port_;
  const Region region_;
  std::size_t port_count_;
  Port* ports_ = nullptr;
  Told* told_ = nullptr;
  std::array<Credits, most_classes> credits_;
};

}  // namespace dryfly::fabric
