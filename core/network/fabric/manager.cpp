#include "core/network/fabric/manager.hpp"

#include <algorithm>
#include <vector>

namespace dryfly::fabric {

bool Manager::avoids_port(std::uint32_t port, bool own) const {
  if (!faults_.concerns(port)) return false;
  if (faults_.absent(port)) return true;
  const std::uint64_t now_ps = now_().ps;
  if (own && faults_.down_at(port, now_ps)) return true;
  return faults_.down_at(port, faults_.seen_ps(now_ps)) || faults_.ordered_out(port, faults_.orders_seen_ps(now_ps));
}

bool Manager::avoids(const Path& path, SwitchId here, std::uint32_t from_place) const {
  SwitchId at = here;
  for (std::uint32_t place = from_place; place < path.switch_hops; ++place) {
    if (avoids_port(dragonfly_.first_port(at) + path.ports[place], place == from_place)) return true;
    at = {dragonfly_.peer(at, path.ports[place]).id};
  }
  return false;
}

bool Manager::lay_what_is_left(Path& path, SwitchId here, SwitchId target, std::uint8_t target_port) {
  const auto known = found_.find({here, target});
  if (known == found_.end() || avoids(known->second, here, 0)) {
    const std::vector<Step> ways = search(here, target);
    if (ways.back().at != target) return false;
    found_[{here, target}] = ways.back().path;
  }
  const Path& rest = found_.at({here, target});
  if (path.switch_hops + rest.switch_hops > channel_count) return false;
  for (std::uint32_t hop = 0; hop < rest.switch_hops; ++hop) path.ports[path.switch_hops++] = rest.ports[hop];
  path.ports[path.switch_hops] = target_port;
  path.decide_at = decided;
  return true;
}

// Breadth first, over as many links as there are virtual channels for: each hop has one of its own, so no way of
// that length can close a circle of waiting.
std::vector<Manager::Step> Manager::search(SwitchId source, SwitchId target) const {
  std::vector<bool> seen(dragonfly_.switch_count());
  std::vector<Step> reached{{source, {}}};
  seen[source.value] = true;
  for (std::size_t next = 0; next < reached.size() && reached.back().at != target; ++next) {
    const Step step = reached[next];
    if (step.path.switch_hops == channel_count) break;
    for (std::uint32_t port = 0; port < dragonfly_.ports_of(step.at); ++port) {
      const Peer& peer = dragonfly_.peer(step.at, port);
      const bool leads_on = peer.kind == Peer::Kind::local_switch || peer.kind == Peer::Kind::global_switch;
      if (!leads_on || seen[peer.id] || avoids_port(dragonfly_.first_port(step.at) + port, step.at == source)) continue;
      seen[peer.id] = true;
      reached.push_back({{peer.id}, step.path});
      Path& path = reached.back().path;
      path.ports[path.switch_hops++] = static_cast<std::uint8_t>(port);
      if (SwitchId{peer.id} == target) break;
    }
  }
  return reached;
}

std::vector<bool> Manager::reached_from(SwitchId source) const {
  std::vector<bool> reached(dragonfly_.switch_count());
  for (const Step& step : search(source, SwitchId{dragonfly_.switch_count()})) reached[step.at.value] = true;
  return reached;
}

}  // namespace dryfly::fabric
