#include "core/network/flow/ways.hpp"

#include "core/unit/random.hpp"

namespace dryfly::flow {

Ways::Ways(const Dragonfly& dragonfly, const Spec& spec, const fabric::FabricSpec& fabric, const fabric::Wiring& wiring,
           const Pipes& pipes)
    : dragonfly_(dragonfly),
      wiring_(wiring),
      pipes_(pipes),
      routing_(fabric::make_routing(spec, dragonfly)),
      latency_least_ps_(fabric.switch_latency.ps - fabric.latency_spread.ps),
      latency_values_(2 * fabric.latency_spread.ps + 1) {
  find_kind();
}

namespace {

struct Idle final : fabric::LoadView {
  std::uint64_t own_ps(std::uint32_t) const override { return 0; }
  std::uint64_t other_ps(std::uint32_t) const override { return 0; }
};

// The links of the minimal ways between two switches have more to do than anybody could wait for.
struct MinimalLoaded final : fabric::LoadView {
  MinimalLoaded(const Dragonfly& dragonfly, const fabric::RouteQuery& query) {
    const GroupId from = dragonfly.group_of(query.source);
    const GroupId to = dragonfly.group_of(query.target);
    if (from == to) {
      for (std::uint32_t parallel = 0; parallel < dragonfly.local_links_in(from); ++parallel) {
        loaded.push_back(dragonfly.first_port(query.source) +
                         dragonfly.local_port(query.source, query.target, parallel));
      }
      return;
    }
    for (const GlobalEnd& end : dragonfly.global_ends(from, to)) {
      loaded.push_back(dragonfly.first_port(end.near) + end.near_port);
    }
  }
  std::uint64_t own_ps(std::uint32_t port) const override { return load_ps(port); }
  std::uint64_t other_ps(std::uint32_t port) const override { return load_ps(port); }
  std::uint64_t load_ps(std::uint32_t port) const {
    constexpr std::uint64_t second_ps = 1'000'000'000'000;
    for (const std::uint32_t busy : loaded) {
      if (busy == port) return second_ps;
    }
    return 0;
  }
  std::vector<std::uint32_t> loaded;
};

}  // namespace

// Several draws, for a detour may be drawn where there is none; and of two switches of a group as well as of two
// groups, for where there are only two of these no third one is on a detour.
void Ways::find_kind() {
  constexpr std::uint32_t tries = 32;
  if (dragonfly_.switch_count() < 2) return;
  takes_minimal_ = true;
  for (const SwitchId target : {SwitchId{1}, SwitchId{dragonfly_.switch_count() - 1}}) {
    const fabric::RouteQuery query{SwitchId{0}, target, 0};
    const MinimalLoaded loaded(dragonfly_, query);
    bool minimal = false;
    bool detours = false;
    for (std::uint32_t draw = 0; draw < tries; ++draw) {
      fabric::PacketDraws draws{draw, 0};
      fabric::PacketDraws again{draw, 0};
      minimal = minimal || !fabric::is_detour(query, routing_->choose(query, draws, Idle{}));
      detours = detours || fabric::is_detour(query, routing_->choose(query, again, loaded));
    }
    takes_detours_ = takes_detours_ || detours;
    takes_minimal_ = takes_minimal_ && (minimal || !detours);
  }
}

void Ways::lay(Journey& journey) const {
  const SwitchId source = dragonfly_.switch_of(journey.source);
  const fabric::RouteQuery query{source, dragonfly_.switch_of(journey.target), dragonfly_.port_of(journey.target)};
  if (journey.laid) {
    fabric::PacketDraws draws{journey.draw, 0};
    const bool leaves = query.source != query.target && routing_->should_leave(query, journey.way, 0, draws, pipes_);
    if (!leaves && (manager_ == nullptr || !manager_->avoids(journey.path, source, 0))) return;
  }
  journey.laid = true;
  if (manager_ == nullptr) return choose(journey, query, journey.draw);
  journey.path = {};
  manager_->lay_in_use(journey.path, query, journey.draw, [&](std::uint32_t draw) { choose(journey, query, draw); });
}

void Ways::choose(Journey& journey, const fabric::RouteQuery& query, std::uint32_t draw) const {
  fabric::Path& path = journey.path;
  path = {};
  fabric::RouteQuery here = query;
  while (path.decide_at != fabric::decided) {
    fabric::Way way;
    way.via = query.target;
    if (here.source != here.target) {
      fabric::PacketDraws draws{draw, path.decide_at};
      way = path.decide_at == 0 ? routing_->choose(here, draws, pipes_) : routing_->go_on(here, draws, pipes_);
    }
    if (path.decide_at == 0) journey.way = way;
    fabric::lay(path, dragonfly_, here.source, here.target, here.target_port, way);
    if (way.open_ended) here.source = way.first_global->far;
  }
}

void Ways::ports_of(const Journey& journey, std::vector<std::uint32_t>& ports) const {
  ports.clear();
  ports.push_back(wiring_.nic_port(journey.source));
  SwitchId at = dragonfly_.switch_of(journey.source);
  for (std::uint32_t hop = 0; hop < journey.path.switch_hops; ++hop) {
    const std::uint8_t port = journey.path.ports[hop];
    ports.push_back(dragonfly_.first_port(at) + port);
    at = {dragonfly_.peer(at, port).id};
  }
  ports.push_back(dragonfly_.first_port(at) + journey.path.ports[journey.path.switch_hops]);
}

std::uint64_t Ways::flights_ps(const Journey& journey, bool home) const {
  const auto flight = [&](std::uint32_t port) { return wiring_.flight_ps(home ? wiring_.peer(port) : port); };
  std::uint64_t sum_ps = flight(wiring_.nic_port(journey.source));
  SwitchId at = dragonfly_.switch_of(journey.source);
  for (std::uint32_t hop = 0; hop < journey.path.switch_hops; ++hop) {
    const std::uint8_t port = journey.path.ports[hop];
    sum_ps += flight(dragonfly_.first_port(at) + port);
    at = {dragonfly_.peer(at, port).id};
  }
  return sum_ps + flight(dragonfly_.first_port(at) + journey.path.ports[journey.path.switch_hops]);
}

// One for each switch, drawn as the packet model draws it.
std::uint64_t Ways::latencies_ps(const Journey& journey, std::uint32_t stream) const {
  const std::uint64_t switches = journey.path.switch_hops + 1U;
  if (latency_values_ == 1) return switches * latency_least_ps_;
  std::uint64_t sum_ps = 0;
  for (std::uint64_t place = 0; place < switches; ++place) {
    const std::uint64_t word = mix(journey.draw ^ (1 + place + stream) << 32);
    sum_ps += latency_least_ps_ + ((word >> 32) * latency_values_ >> 32);
  }
  return sum_ps;
}

std::uint64_t Ways::out_ps(const Journey& journey) const {
  return journey.loops() ? 0 : flights_ps(journey, false) + latencies_ps(journey, 0);
}

std::uint64_t Ways::home_ps(const Journey& journey) const {
  return journey.loops() ? 0 : flights_ps(journey, true) + latencies_ps(journey, 16);
}

}  // namespace dryfly::flow
