// Adaptive routing in the manner of UGAL, as Slingshot has it: up to four candidates, the load of their output
// ports, a bias towards minimal (docs/model/routing.md#adaptive-routing): of two minimal ways the less loaded,
// unless the less loaded of two detours is better by more than the bias: queued(minimal) > (queued(detour) << shift)
// + bytes.
//
// The load of a way is what is queued at its first port and, where its first global link hangs on another switch of
// the group, at that link's port as that switch told it. Loads are compared as times, which at one rate is comparing
// bytes. Equal loads: fewer hops, then the way drawn first. A detour goes on by the better of two minimal ways.
//
// The group-load setting (docs/model/routing.md#group-load) is of kinds of groups: there a detour's third group is
// not drawn. The switch takes the one to which the way that it would take is loaded least, of all groups through
// which there is a way. What of a group's own load the hardware knows is not published; here it is the queues of the
// links to it, by which a group that takes up little is seen as well.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/route/algorithms.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::fabric {
namespace {

class Adaptive final : public Routing {
 public:
  Adaptive(const Spec& spec, const Dragonfly& dragonfly)
      : dragonfly_(dragonfly),
        shift_(spec.small(fields::fabric_routing_bias_shift)),
        bias_ps_(transmission_time(Bytes{spec.number(fields::fabric_routing_bias_bytes)},
                                   Rate{spec.number(fields::fabric_link_rate_bytes_per_s)})
                     .ps),
        drain_ps_(std::max(bias_ps_, spec.number(fields::fabric_congestion_round_trip_ps))) {
    const bool has_kinds = spec.has(fields::fabric_routing_group_load);
    const std::string kinds = has_kinds ? spec.text(fields::fabric_routing_group_load) : "";
    for (std::uint32_t group = 0; group < dragonfly.group_count(); ++group) {
      by_load_.push_back(names(kinds, dragonfly.kind_name({group})));
    }
  }

  Way choose(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const override {
    const bool leaves_group = dragonfly_.group_of(query.source) != dragonfly_.group_of(query.target);
    const bool by_load = leaves_group && by_load_[dragonfly_.group_of(query.source).value];
    if (load.is_far() && !by_load) prefetch_candidates(query, draws, load);
    const Choice minimal = best_minimal(query, draws, load);
    // No detour can win against so little.
    if (minimal.load_ps <= bias_ps_) return minimal.way;
    Choice detour;
    if (by_load) detour = by_least_loaded_group(query, draws, load);
    for (int candidate = 0; candidate < 2 && !by_load; ++candidate) {
      const Way way = draw_detour(dragonfly_, query, draws);
      if (is_detour(query, way)) detour = better(detour, weigh(query, way, load));
    }
    const bool none_found = detour.load_ps == never.ps;
    return !none_found && minimal.load_ps > (detour.load_ps << shift_) + bias_ps_ ? detour.way : minimal.way;
  }
  Way go_on(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const override {
    return best_minimal(query, draws, load).way;
  }
  // The way that the flow has stands where the minimal one does in choose(). The flow sends nothing for about a round
  // trip when it drains, so another way has to be better by more than that.
  bool should_leave(const RouteQuery& query, const Way& current, std::uint64_t leaving_ps, PacketDraws& draws,
                    const LoadView& load) const override {
    const std::uint64_t loaded_ps = weigh(query, current, load).load_ps;
    const std::uint64_t current_ps = loaded_ps - std::min(loaded_ps, leaving_ps);
    if (current_ps <= drain_ps_) return false;
    return current_ps > (weigh(query, choose(query, draws, load), load).load_ps << shift_) + drain_ps_;
  }

 private:
  struct Choice {
    Way way;
    std::uint64_t load_ps = never.ps;
    std::uint32_t hops = most_switches;
  };

  static const Choice& better(const Choice& first, const Choice& second) {
    const bool second_wins = std::pair{second.load_ps, second.hops} < std::pair{first.load_ps, first.hops};
    return second_wins ? second : first;
  }

  Choice best_minimal(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const {
    const Choice first = weigh(query, draw_minimal(dragonfly_, query, draws), load);
    if (!has_several_minimal(query)) return first;
    return better(first, weigh(query, draw_minimal(dragonfly_, query, draws), load));
  }

  // Beginning with a group that is drawn, so that equally loaded ones are taken equally often.
  Choice by_least_loaded_group(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const {
    const GroupId from = dragonfly_.group_of(query.source);
    const GroupId to = dragonfly_.group_of(query.target);
    const std::uint32_t groups = dragonfly_.group_count();
    const std::uint32_t first = draws.below(groups);
    const std::uint64_t pick = draws.fraction();
    Way way;
    way.via = query.target;
    way.parallel = draws.fraction();
    way.open_ended = true;
    Choice least;
    for (std::uint32_t place = 0; place < groups && least.load_ps != 0; ++place) {
      const GroupId by{(first + place) % groups};
      const auto there = dragonfly_.global_ends(from, by);
      if (by == from || by == to || there.empty() || dragonfly_.global_ends(by, to).empty()) continue;
      way.first_global = &there[(there.size() * pick) >> 32];
      least = better(least, weigh(query, way, load));
    }
    return least;
  }

  static bool names(std::string_view kinds, std::string_view kind) {
    while (!kinds.empty()) {
      const std::size_t end = std::min(kinds.find(','), kinds.size());
      if (kinds.substr(0, end) == kind) return true;
      kinds.remove_prefix(std::min(end + 1, kinds.size()));
      kinds.remove_prefix(std::min(kinds.find_first_not_of(' '), kinds.size()));
    }
    return false;
  }

  bool has_several_minimal(const RouteQuery& query) const {
    const GroupId from = dragonfly_.group_of(query.source);
    const GroupId to = dragonfly_.group_of(query.target);
    return dragonfly_.local_links_in(from) > 1 || (from != to && dragonfly_.global_ends(from, to).size() > 1);
  }

  // The ports whose load is that of a way.
  struct Weighed {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    std::uint32_t own = none;    // of the switch that decides
    std::uint32_t other = none;  // of another of its group
  };
  Weighed ports_of(const RouteQuery& query, const Way& way) const {
    const SwitchId local_target = way.first_global != nullptr ? way.first_global->near : way.via;
    const bool local_first = local_target != query.source;
    Weighed ports;
    if (local_first) {
      ports.own =
          dragonfly_.first_port(query.source) + local_port(dragonfly_, query.source, local_target, way.parallel);
    }
    if (way.first_global != nullptr) {
      (local_first ? ports.other : ports.own) = dragonfly_.first_port(local_target) + way.first_global->near_port;
    }
    return ports;
  }

  Choice weigh(const RouteQuery& query, const Way& way, const LoadView& load) const {
    const Weighed ports = ports_of(query, way);
    std::uint64_t load_ps = 0;
    if (ports.own != Weighed::none) load_ps += load.own_ps(ports.own);
    if (ports.other != Weighed::none) load_ps += load.other_ps(ports.other);
    return {way, load_ps, hops_along(query.source, query.target, way)};
  }

  // Those that choose() will draw.
  void prefetch_candidates(const RouteQuery& query, PacketDraws draws, const LoadView& load) const {
    const auto prefetch = [&](const Way& way) {
      const Weighed ports = ports_of(query, way);
      if (ports.own != Weighed::none) load.prefetch(ports.own);
      if (ports.other != Weighed::none) load.prefetch(ports.other);
    };
    prefetch(draw_minimal(dragonfly_, query, draws));
    if (has_several_minimal(query)) prefetch(draw_minimal(dragonfly_, query, draws));
    for (int detour = 0; detour < 2; ++detour) prefetch(draw_detour(dragonfly_, query, draws));
  }

  const Dragonfly& dragonfly_;
  std::vector<bool> by_load_;  // by group
  std::uint32_t shift_;
  std::uint64_t bias_ps_;
  std::uint64_t drain_ps_;
};

}  // namespace

std::unique_ptr<Routing> make_adaptive(const Spec& spec, const Dragonfly& dragonfly) {
  return std::make_unique<Adaptive>(spec, dragonfly);
}

}  // namespace dryfly::fabric
