#include "core/route/routing.hpp"

#include <array>
#include <string>
#include <string_view>

namespace dryfly::fabric {
namespace {

struct Algorithm {
  std::string_view name;
  std::unique_ptr<Routing> (*make)(const FabricSpec&, const Dragonfly&);
};

constexpr std::array algorithms{
    Algorithm{"minimal", make_minimal},
    Algorithm{"valiant", make_valiant},
    Algorithm{"adaptive", make_adaptive},
};

}  // namespace

std::unique_ptr<Routing> make_routing(const FabricSpec& fabric, const Dragonfly& dragonfly) {
  std::string accepted;
  for (const Algorithm& algorithm : algorithms) {
    if (algorithm.name == fabric.routing) return algorithm.make(fabric, dragonfly);
    accepted += (accepted.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  throw SpecError("fabric.routing.algorithm = `" + fabric.routing + "`: accepted are " + accepted);
}

Way draw_minimal(const Dragonfly& dragonfly, const RouteQuery& query, PacketDraws& draws) {
  Way way;
  way.via = query.target;
  way.parallel = draws.fraction();
  const GroupId from = dragonfly.group_of(query.source);
  const GroupId to = dragonfly.group_of(query.target);
  if (from != to) {
    const auto ends = dragonfly.global_ends(from, to);
    way.first_global = &ends[draws.below(ends.size())];
  }
  return way;
}

Way draw_detour(const Dragonfly& dragonfly, const RouteQuery& query, PacketDraws& draws) {
  Way way;
  way.via = query.target;
  way.parallel = draws.fraction();
  const GroupId from = dragonfly.group_of(query.source);
  const GroupId to = dragonfly.group_of(query.target);
  if (from == to) {
    const SwitchId via{dragonfly.first_switch(from).value + draws.below(dragonfly.switches_in(from))};
    if (via != query.source) way.via = via;
    return way;
  }
  const GroupId via{draws.below(dragonfly.group_count())};
  const auto there = dragonfly.global_ends(from, via);
  if (there.empty() || via == to || dragonfly.global_ends(via, to).empty())
    return draw_minimal(dragonfly, query, draws);
  way.first_global = &there[draws.below(there.size())];
  way.open_ended = true;
  return way;
}

bool is_detour(const RouteQuery& query, const Way& way) {
  return way.open_ended || (way.first_global == nullptr && way.via != query.target);
}

}  // namespace dryfly::fabric
