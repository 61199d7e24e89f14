#include "core/network/flow/fan.hpp"

#include <algorithm>

#include "core/unit/random.hpp"

namespace dryfly::flow {
namespace {

// Of an algorithm that takes detours only; a power of two, so that sums of its parts are exact.
constexpr std::uint32_t spread = 32;

// Ways that have a link in common cross it as one.
void merge(std::vector<Crossing>& crossings) {
  std::ranges::sort(crossings, {}, &Crossing::pipe);
  std::size_t kept = 0;
  for (std::size_t next = 1; next < crossings.size(); ++next) {
    if (crossings[next].pipe == crossings[kept].pipe) {
      crossings[kept].times += crossings[next].times;
    } else {
      crossings[++kept] = crossings[next];
    }
  }
  if (!crossings.empty()) crossings.resize(kept + 1);
}

}  // namespace

Fan::Fan(const Dragonfly& dragonfly, const Ways& ways, const Pipes& pipes)
    : dragonfly_(dragonfly), ways_(ways), pipes_(pipes) {}

std::uint32_t Fan::minimal(SwitchId from, SwitchId to) const {
  if (!ways_.takes_minimal() && detours(from, to) > 0) return 0;
  const GroupId here = dragonfly_.group_of(from);
  const GroupId there = dragonfly_.group_of(to);
  if (here == there) return 1;
  return static_cast<std::uint32_t>(std::min<std::size_t>(dragonfly_.global_ends(here, there).size(), most_minimal));
}

std::uint32_t Fan::detours(SwitchId from, SwitchId to) const {
  if (!ways_.takes_detours()) return 0;
  const GroupId here = dragonfly_.group_of(from);
  const std::uint32_t of_group = dragonfly_.switches_in(here);
  const bool stays = here == dragonfly_.group_of(to);
  const std::uint32_t thirds = stays ? of_group : dragonfly_.group_count();
  if (thirds < 3) return 0;
  return ways_.takes_minimal() ? std::min(thirds - 2, stays ? most_by_switches : most_by_groups) : 1;
}

std::uint32_t Fan::count(SwitchId from, SwitchId to) const {
  return from == to ? 0 : minimal(from, to) + detours(from, to);
}

void Fan::add_local(SwitchId a, SwitchId b, float times, std::vector<Crossing>& crossings) const {
  if (a != b) crossings.push_back({pipes_.of_port(dragonfly_.first_port(a) + dragonfly_.local_port(a, b, 0)), times});
}

void Fan::add_global(const GlobalEnd& end, float times, std::vector<Crossing>& crossings) const {
  crossings.push_back({pipes_.of_port(dragonfly_.first_port(end.near) + end.near_port), times});
}

void Fan::lay(SwitchId from, SwitchId to, std::uint32_t stream, std::uint32_t way,
              std::vector<Crossing>& crossings) const {
  crossings.clear();
  const std::uint32_t direct = minimal(from, to);
  if (way >= direct && direct > 0) return lay_detour(from, to, std::uint64_t{stream} + way - direct, 1, crossings);
  if (direct == 0) {
    for (std::uint32_t n = 0; n < spread; ++n) {
      lay_detour(from, to, std::uint64_t{stream} * spread + n, 1.0F / spread, crossings);
    }
    return merge(crossings);
  }
  const GroupId here = dragonfly_.group_of(from);
  const GroupId there = dragonfly_.group_of(to);
  if (here == there) return add_local(from, to, 1, crossings);
  const auto ends = dragonfly_.global_ends(here, there);
  const GlobalEnd& end = ends[(stream + way) % ends.size()];
  add_local(from, end.near, 1, crossings);
  add_global(end, 1, crossings);
  add_local(end.far, to, 1, crossings);
}

// By the groups or switches in turn, beginning with one that the number decides; those without links are passed over.
void Fan::lay_detour(SwitchId from, SwitchId to, std::uint64_t number, float times,
                     std::vector<Crossing>& crossings) const {
  const GroupId here = dragonfly_.group_of(from);
  const GroupId there = dragonfly_.group_of(to);
  if (here == there) {
    const std::uint32_t switches = dragonfly_.switches_in(here);
    const std::uint32_t first = dragonfly_.first_switch(here).value;
    for (std::uint32_t place = 0; place < switches; ++place) {
      const SwitchId by{first + static_cast<std::uint32_t>((number + place) % switches)};
      if (by == from || by == to) continue;
      add_local(from, by, times, crossings);
      return add_local(by, to, times, crossings);
    }
    return;
  }
  const std::uint32_t groups = dragonfly_.group_count();
  for (std::uint32_t place = 0; place < groups; ++place) {
    const GroupId by{static_cast<std::uint32_t>((number + place) % groups)};
    if (by == here || by == there) continue;
    const auto out = dragonfly_.global_ends(here, by);
    const auto in = dragonfly_.global_ends(by, there);
    if (out.empty() || in.empty()) continue;
    const std::uint64_t pick = mix(number * groups + by.value);
    const GlobalEnd& first = out[pick % out.size()];
    const GlobalEnd& second = in[(pick >> 32) % in.size()];
    add_local(from, first.near, times, crossings);
    add_global(first, times, crossings);
    add_local(first.far, second.near, times, crossings);
    add_global(second, times, crossings);
    return add_local(second.far, to, times, crossings);
  }
}

}  // namespace dryfly::flow
