// Adaptive routing in the manner of UGAL, as Slingshot has it (fact sheet B1: up to four candidates, the load of
// their output ports, a bias towards minimal): of two minimal ways the less loaded, unless the less loaded of two
// detours is better by more than the bias: queued(minimal) > (queued(detour) << shift) + bytes.
//
// The load of a way is what is queued at its first port and, where its first global link hangs on another switch of
// the group, at that link's port as that switch told it. Loads are compared as times, which at one rate is comparing
// bytes. Equal loads: fewer hops, then the way drawn first. A detour goes on by the better of two minimal ways.
#include <utility>

#include "core/fabric/routing.hpp"

namespace dryfly::fabric {
namespace {

class Adaptive final : public Routing {
 public:
  Adaptive(const FabricSpec& fabric, const Dragonfly& dragonfly)
      : dragonfly_(dragonfly), shift_(fabric.bias_shift), bias_ps_(transmission_time(fabric.bias, fabric.rate).ps) {}

  Way choose(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const override {
    const Choice minimal = best_minimal(query, draws, load);
    // No detour can win against so little.
    if (minimal.load_ps <= bias_ps_) return minimal.way;
    Choice detour;
    for (int candidate = 0; candidate < 2; ++candidate) {
      const Way way = draw_detour(dragonfly_, query, draws);
      if (is_detour(query, way)) detour = better(detour, weigh(query, way, load));
    }
    const bool none_found = detour.load_ps == never.ps;
    return !none_found && minimal.load_ps > (detour.load_ps << shift_) + bias_ps_ ? detour.way : minimal.way;
  }
  Way go_on(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const override {
    return best_minimal(query, draws, load).way;
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

  bool has_several_minimal(const RouteQuery& query) const {
    const GroupId from = dragonfly_.group_of(query.source);
    const GroupId to = dragonfly_.group_of(query.target);
    return dragonfly_.local_links_in(from) > 1 || (from != to && dragonfly_.global_ends(from, to).size() > 1);
  }

  Choice weigh(const RouteQuery& query, const Way& way, const LoadView& load) const {
    const SwitchId local_target = way.first_global != nullptr ? way.first_global->near : way.via;
    const std::uint32_t first_port = dragonfly_.first_port(query.source);
    const bool local_first = local_target != query.source;
    std::uint64_t load_ps = 0;
    if (local_first) {
      load_ps += load.own_ps(first_port + local_port(dragonfly_, query.source, local_target, way.parallel));
    }
    if (way.first_global != nullptr) {
      const std::uint32_t global = dragonfly_.first_port(local_target) + way.first_global->near_port;
      load_ps += local_first ? load.other_ps(global) : load.own_ps(global);
    }
    return {way, load_ps, hops_along(query.source, query.target, way)};
  }

  const Dragonfly& dragonfly_;
  std::uint32_t shift_;
  std::uint64_t bias_ps_;
};

}  // namespace

std::unique_ptr<Routing> make_adaptive(const FabricSpec& fabric, const Dragonfly& dragonfly) {
  return std::make_unique<Adaptive>(fabric, dragonfly);
}

}  // namespace dryfly::fabric
