// How long the frames of data are, and what they take: on a link, and within a NIC that sends to itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/network/fabric/fabric_spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

class Frames {
 public:
  explicit Frames(const FabricSpec& fabric)
      : payload_max_(fabric.payload_max),
        header_(fabric.header),
        rate_(fabric.rate),
        loopback_rate_(fabric.loopback_rate),
        largest_ps_(on_link(fabric.payload_max)) {}

  Bytes payload_max() const { return payload_max_; }
  Bytes frame_of(Bytes payload) const { return payload + header_; }
  Bytes payload_of(std::uint32_t frame_bytes) const { return Bytes{frame_bytes - header_.count}; }
  // Nearly all are the largest, whose time is divided out once.
  std::uint32_t transmission_ps(Bytes payload, bool looped) const {
    const std::uint32_t ps = payload == payload_max_ ? largest_ps_ : on_link(payload);
    if (!looped || loopback_rate_.bytes_per_s == 0) [[likely]]
      return ps;
    return std::max(ps, static_cast<std::uint32_t>(transmission_time(payload, loopback_rate_).ps));
  }

 private:
  std::uint32_t on_link(Bytes payload) const {
    return static_cast<std::uint32_t>(transmission_time(payload + header_, rate_).ps);
  }

  Bytes payload_max_;
  Bytes header_;
  Rate rate_;
  Rate loopback_rate_;  // 0: as a link
  std::uint32_t largest_ps_;
};

}  // namespace dryfly::fabric
