#include "core/fabric/qos.hpp"

#include <algorithm>

namespace dryfly::fabric {
namespace {

constexpr std::uint64_t whole_ppm = 1'000'000;
constexpr std::array<const char*, most_classes> names{"dedicated",   "low_latency", "bulk_data",
                                                      "best_effort", "scavenger",   "ethernet"};

std::string percent(std::uint64_t ppm) { return std::to_string(ppm / 10'000) + " %"; }

ClassShares read_class(const Spec& spec, const std::string& prefix) {
  ClassShares shares;
  shares.name = spec.text(prefix + "name");
  const auto ppm = [&](const char* leaf, std::uint64_t least) {
    return static_cast<std::uint32_t>(spec.number_in(prefix + leaf, least, whole_ppm));
  };
  shares.assured_ppm = ppm("assured_ppm", 0);
  shares.ceiling_ppm = ppm("ceiling_ppm", std::max(1U, shares.assured_ppm));
  shares.fabric_ppm = ppm("fabric_ppm", 1);
  shares.priority = static_cast<std::uint32_t>(spec.number_in(prefix + "priority", 0, 7));
  shares.bucket_frames = static_cast<std::uint32_t>(spec.number_in(prefix + "bucket_frames", 1, 1'000));
  return shares;
}

std::uint8_t place_of(const QosProfile& profile, const std::string& name) {
  const auto found = std::find_if(profile.classes.begin(), profile.classes.end(),
                                  [&](const ClassShares& shares) { return shares.name == name; });
  return static_cast<std::uint8_t>(found == profile.classes.end() ? no_class : found - profile.classes.begin());
}

void check_sum(const QosProfile& profile, const char* leaf, std::uint32_t ClassShares::* share) {
  std::uint64_t sum = 0;
  for (const ClassShares& shares : profile.classes) sum += shares.*share;
  if (sum > whole_ppm) {
    throw SpecError(std::string("fabric.qos: the shares `") + leaf + "` of all classes add up to " + percent(sum) +
                    "; accepted is at most 100 %");
  }
}

}  // namespace

const char* traffic_class_name(TrafficClass traffic_class) { return names[static_cast<std::size_t>(traffic_class)]; }

QosProfile QosProfile::read(const Spec& spec, Duration frame_max) {
  QosProfile profile;
  profile.frame_max_ps = frame_max.ps;
  const std::uint64_t count = spec.number_in("fabric.qos.classes", 1, most_classes);
  for (std::uint64_t index = 0; index < count; ++index) {
    const std::string prefix = "fabric.qos.class." + std::to_string(index) + ".";
    profile.classes.push_back(read_class(spec, prefix));
    if (std::find(names.begin(), names.end(), profile.classes.back().name) == names.end()) {
      throw SpecError(prefix + "name = `" + profile.classes.back().name + "`: there is no such traffic class");
    }
  }
  check_sum(profile, "assured", &ClassShares::assured_ppm);
  check_sum(profile, "fabric", &ClassShares::fabric_ppm);
  const std::string& fallback = spec.text("fabric.qos.default");
  const std::uint8_t otherwise = place_of(profile, fallback);
  if (otherwise == no_class) {
    throw SpecError("fabric.qos.default = `" + fallback + "`: the profile has no such class");
  }
  for (std::size_t asked = 0; asked < most_classes; ++asked) {
    const std::uint8_t place = place_of(profile, names[asked]);
    const bool unsaid = asked == static_cast<std::size_t>(TrafficClass::best_effort);
    profile.class_of[asked] = place == no_class || unsaid ? otherwise : place;
  }
  return profile;
}

std::uint32_t Arbiter::choose(const QosProfile& profile, std::uint32_t candidates, std::uint64_t now_ps) const {
  std::uint32_t chosen = no_class;
  for (std::uint32_t index = 0; index < profile.classes.size(); ++index) {
    if (((candidates >> index) & 1) == 0 || !below_ceiling(index, now_ps)) continue;
    if (chosen == no_class || profile.classes[index].priority > profile.classes[chosen].priority) {
      chosen = index;
    } else if (profile.classes[index].priority == profile.classes[chosen].priority &&
               std::max(had_[index], virtual_now_) < std::max(had_[chosen], virtual_now_)) {
      chosen = index;
    }
  }
  return chosen;
}

void Arbiter::serve(const QosProfile& profile, std::uint32_t chosen, std::uint32_t share_ppm,
                    std::uint64_t transmission_ps, std::uint64_t now_ps) {
  const ClassShares& shares = profile.classes[chosen];
  virtual_now_ = std::max(had_[chosen], virtual_now_);
  had_[chosen] = virtual_now_ + transmission_ps * whole_ppm / std::max(1U, share_ppm);
  if (!shares.capped()) return;
  const std::uint64_t bucket_ps = shares.bucket_frames * profile.frame_max_ps * whole_ppm / shares.ceiling_ppm;
  const std::uint64_t earliest = now_ps > bucket_ps ? now_ps - bucket_ps : 0;
  allowed_at_ps_[chosen] =
      std::max(allowed_at_ps_[chosen], earliest) + transmission_ps * whole_ppm / shares.ceiling_ppm;
}

}  // namespace dryfly::fabric
