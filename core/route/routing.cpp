#include "core/route/routing.hpp"

#include <algorithm>
#include <string>

#include "core/route/algorithms.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/check.hpp"

namespace dryfly::fabric {

std::unique_ptr<Routing> make_routing(const Spec& spec, const Dragonfly& dragonfly) {
  const std::string name = spec.text(fields::fabric_routing_algorithm);
  const auto found = std::find_if(algorithms.begin(), algorithms.end(),
                                  [&](const Algorithm& algorithm) { return algorithm.name == name; });
  // The names that the spec accepts are generated from the same rows.
  DRYFLY_CHECK(found != algorithms.end());
  return found->make(spec, dragonfly);
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
