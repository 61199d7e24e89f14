#include "core/network/fabric/qos.hpp"

#include <algorithm>

#include "core/spec/fields.hpp"

namespace dryfly::fabric {
namespace {

static_assert(fields::fabric_qos_classes.most == most_classes);

constexpr std::array<const char*, most_classes> names{"dedicated",   "low_latency", "bulk_data",
                                                      "best_effort", "scavenger",   "ethernet"};

std::string percent(std::uint64_t ppm) { return std::to_string(ppm / 10'000) + " %"; }

ClassShares read_class(const Spec& spec, std::uint64_t index) {
  ClassShares shares;
  shares.name = spec.text(fields::fabric_qos_class_name, {index});
  shares.assured_ppm = spec.small(fields::fabric_qos_class_assured_ppm, {index});
  shares.ceiling_ppm = static_cast<std::uint32_t>(
      spec.number_between(shares.assured_ppm, whole_ppm, fields::fabric_qos_class_ceiling_ppm, {index}));
  shares.fabric_ppm = spec.small(fields::fabric_qos_class_fabric_ppm, {index});
  shares.priority = spec.small(fields::fabric_qos_class_priority, {index});
  shares.bucket_frames = spec.small(fields::fabric_qos_class_bucket_frames, {index});
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
  const std::uint64_t count = spec.number(fields::fabric_qos_classes);
  for (std::uint64_t index = 0; index < count; ++index) profile.classes.push_back(read_class(spec, index));
  check_sum(profile, "assured", &ClassShares::assured_ppm);
  check_sum(profile, "fabric", &ClassShares::fabric_ppm);
  const std::string& fallback = spec.text(fields::fabric_qos_default);
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
