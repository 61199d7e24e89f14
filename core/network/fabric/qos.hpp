// Traffic classes: the profile that a machine runs, and the arbiter by which an output shares its link among them.
//
// Models the QoS profiles of Slingshot (docs/model/classes.md#profiles): at a NIC a class has an assured share of
// the link and a ceiling, in the fabric a share; some classes have priority. Shares are shares of what is wanted:
// what one class leaves is the others'. A class above its ceiling waits, though the link be idle; its bucket lets a
// few frames pass at once. Among the classes that may send those of the highest priority go first, and among these
// the one that has had least in proportion to its share (start-time fair queueing, Goyal, Vin and Cheng 1996; the
// hardware's own arbitration is not published). A class that the profile does not have travels as best effort.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/contract/network.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

inline constexpr std::uint32_t most_classes = 6;
inline constexpr std::uint32_t no_class = 0xff;
inline constexpr std::uint64_t whole_ppm = 1'000'000;

struct ClassShares {
  std::string name;
  std::uint32_t assured_ppm = 0;  // of the NIC's link
  std::uint32_t ceiling_ppm = 0;
  std::uint32_t fabric_ppm = 0;  // of a link between switches
  std::uint32_t priority = 0;
  std::uint32_t bucket_frames = 0;
  bool capped() const { return ceiling_ppm < whole_ppm; }
};

struct QosProfile {
  std::vector<ClassShares> classes;
  std::array<std::uint8_t, most_classes> class_of{};  // by TrafficClass
  std::uint64_t frame_max_ps = 0;

  // Throws SpecError.
  static QosProfile read(const Spec& spec, Duration frame_max);
  std::uint32_t of(TrafficClass asked) const { return class_of[static_cast<std::size_t>(asked)]; }
};

const char* traffic_class_name(TrafficClass traffic_class);

// One output's account of what its classes have had. Times of transmission stand for bytes.
class Arbiter {
 public:
  // The class of `candidates` (bits) to serve now, or no_class if all are above their ceilings.
  std::uint32_t choose(const QosProfile& profile, std::uint32_t candidates, std::uint64_t now_ps) const;
  void serve(const QosProfile& profile, std::uint32_t chosen, std::uint32_t share_ppm, std::uint64_t transmission_ps,
             std::uint64_t now_ps);
  bool below_ceiling(std::uint32_t traffic_class, std::uint64_t now_ps) const {
    return allowed_at_ps_[traffic_class] <= now_ps;
  }
  std::uint64_t allowed_at_ps(std::uint32_t traffic_class) const { return allowed_at_ps_[traffic_class]; }

 private:
  std::array<std::uint64_t, most_classes> had_{};            // virtual time
  std::array<std::uint64_t, most_classes> allowed_at_ps_{};  // by the ceiling
  std::uint64_t virtual_now_ = 0;
};

}  // namespace dryfly::fabric
