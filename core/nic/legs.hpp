// What goes from place to place in the tree of a group, and what waits at a place for its time: the legs of reductions
// and of joins. One pool holds both, so that one kind of parcel stands for both.
#pragma once

#include <cstdint>

#include "core/nic/transport.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::nic {

enum class LegKind : std::uint8_t {
  part,        // of a reduction, to the parent
  combined,    // the engine has taken one in
  launch_arm,  // the root's NIC is ready to send down
  launch_result,
  arm,     // down
  result,  // down
  armed,   // an arming packet is in a member's memory
  landed,  // a result is
  join_up,
  join_down,
  join_up_read,  // software has taken in what came
  join_down_read,
};

// It ends at a place, the number of a member.
struct Leg {
  LegKind kind = LegKind::part;
  std::uint32_t owner = 0;  // the reduction, or the join
  std::uint32_t life = 0;   // of the owner: it may be another by then
  std::uint32_t place = 0;
  bool acknowledged_later = false;

  bool of_join() const { return kind >= LegKind::join_up; }
};

class Legs {
 public:
  explicit Legs(Transport& transport) : transport_(transport) {}

  // Stays where it is.
  void hold(const Leg& leg, Duration time) { transport_.hold(parcel(leg), time); }
  // By the NIC itself.
  void send(const Leg& leg, EndpointId from, EndpointId to) {
    ++packets_;
    transport_.send(journey(from, to), parcel(leg, from, to));
  }
  void send_command(const Leg& leg, EndpointId from, EndpointId to, Fetched fetched) {
    ++packets_;
    transport_.send_command(journey(from, to), parcel(leg, from, to), fetched);
  }

  // What has arrived or is lost. It is over, but for the acknowledgement of one that has arrived.
  Leg arrived(Parcel parcel) {
    const Leg leg = legs_[parcel.item];
    if (!leg.acknowledged_later) legs_.release(parcel.item);
    return leg;
  }
  Leg lost(Parcel parcel) {
    const Leg leg = legs_[parcel.item];
    DRYFLY_CHECK(leg.acknowledged_later);
    legs_.release(parcel.item);
    return leg;
  }
  void acknowledged(Parcel parcel) { legs_.release(parcel.item); }

  void restart() {
    legs_.restart();
    packets_ = 0;
  }
  bool at_rest() const { return legs_.in_use() == 0; }
  std::uint64_t packets() const { return packets_; }

 private:
  // Of a reduction packet with its 32 bytes (cxip_coll.c); one for a barrier is as long.
  static constexpr Bytes packet_bytes{49};

  static Journey journey(EndpointId from, EndpointId to) {
    return {from, to, packet_bytes, TrafficClass::low_latency, true};
  }
  Parcel parcel(const Leg& leg) {
    const std::uint32_t index = legs_.acquire();
    legs_[index] = leg;
    return {Step::collective, index};
  }
  Parcel parcel(Leg leg, EndpointId from, EndpointId to) {
    leg.acknowledged_later = !transport_.by_memory(from, to);
    return parcel(leg);
  }

  Transport& transport_;
  Pool<Leg> legs_;
  std::uint64_t packets_ = 0;
};

}  // namespace dryfly::nic
