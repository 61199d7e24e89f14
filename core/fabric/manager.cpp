#include "core/fabric/manager.hpp"

#include <algorithm>
#include <vector>

namespace dryfly::fabric {

bool Manager::avoids_port(std::uint32_t port, bool own) const {
  const std::uint32_t trouble = links_[port].trouble;
  if (trouble == none) return false;
  if (faults_.absent(trouble)) return true;
  const std::uint64_t now_ps = links_.now_ps();
  if (own && faults_.down_at(trouble, now_ps)) return true;
  return faults_.down_at(trouble, faults_.seen_ps(now_ps)) ||
         faults_.ordered_out(trouble, faults_.orders_seen_ps(now_ps));
}

bool Manager::avoids(const Path& path, SwitchId source) const {
  SwitchId at = source;
  for (std::uint32_t place = 0; place < path.switch_hops; ++place) {
    if (avoids_port(dragonfly_.first_port(at) + path.ports[place], place == 0)) return true;
    at = {dragonfly_.peer(at, path.ports[place]).id};
  }
  return false;
}

std::optional<Path> Manager::way_left(SwitchId source, SwitchId target, std::uint8_t target_port) {
  const auto known = found_.find({source, target});
  std::optional<Path> way;
  if (known != found_.end() && !avoids(known->second, source)) {
    way = known->second;
  } else {
    way = search(source, target);
    if (!way) return way;
    found_[{source, target}] = *way;
  }
  way->ports[way->switch_hops] = target_port;
  return way;
}

// Breadth first, over as many links as there are virtual channels for: each hop has one of its own, so no way of
// that length can close a circle of waiting.
std::optional<Path> Manager::search(SwitchId source, SwitchId target) const {
  struct Step {
    SwitchId at;
    Path path;
  };
  std::vector<bool> seen(dragonfly_.switch_count());
  std::vector<Step> reached{{source, {}}};
  seen[source.value] = true;
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const Step step = reached[next];
    if (step.at == target) return step.path;
    if (step.path.switch_hops == channel_count) continue;
    for (std::uint32_t port = 0; port < dragonfly_.ports_of(step.at); ++port) {
      const Peer& peer = dragonfly_.peer(step.at, port);
      const bool leads_on = peer.kind == Peer::Kind::local_switch || peer.kind == Peer::Kind::global_switch;
      if (!leads_on || seen[peer.id] || avoids_port(dragonfly_.first_port(step.at) + port, step.at == source)) continue;
      seen[peer.id] = true;
      reached.push_back({{peer.id}, step.path});
      Path& path = reached.back().path;
      path.ports[path.switch_hops++] = static_cast<std::uint8_t>(port);
    }
  }
  return std::nullopt;
}

}  // namespace dryfly::fabric
