#include "core/route/paths.hpp"

namespace dryfly::fabric {

std::uint8_t local_port(const Dragonfly& dragonfly, SwitchId from, SwitchId to, std::uint32_t parallel) {
  const std::uint64_t links = dragonfly.local_links_in(dragonfly.group_of(from));
  return dragonfly.local_port(from, to, static_cast<std::uint32_t>((links * parallel) >> 32));
}

void lay(Path& path, const Dragonfly& dragonfly, SwitchId at, SwitchId target, std::uint8_t target_port,
         const Way& way) {
  const auto go = [&](std::uint8_t port, SwitchId next) {
    path.ports[path.switch_hops++] = port;
    at = next;
  };
  const auto go_local = [&](SwitchId next) {
    if (at != next) go(local_port(dragonfly, at, next, way.parallel), next);
  };
  for (const GlobalEnd* global : {way.first_global, way.second_global}) {
    if (global == nullptr) continue;
    go_local(global->near);
    go(global->near_port, global->far);
  }
  path.decide_at = way.open_ended ? path.switch_hops : decided;
  if (way.open_ended) return;
  if (way.first_global == nullptr) go_local(way.via);
  go_local(target);
  path.ports[path.switch_hops] = target_port;
}

Path path_along(const Dragonfly& dragonfly, SwitchId source, SwitchId target, std::uint8_t target_port,
                const Way& way) {
  Path path;
  lay(path, dragonfly, source, target, target_port, way);
  return path;
}

std::uint32_t hops_along(SwitchId source, SwitchId target, const Way& way) {
  std::uint32_t hops = 0;
  SwitchId at = source;
  for (const GlobalEnd* global : {way.first_global, way.second_global}) {
    if (global == nullptr) continue;
    hops += at != global->near ? 2 : 1;
    at = global->far;
  }
  if (way.open_ended) return hops + 2;
  if (way.first_global == nullptr && at != way.via) {
    ++hops;
    at = way.via;
  }
  return hops + (at != target ? 1 : 0);
}

}  // namespace dryfly::fabric
