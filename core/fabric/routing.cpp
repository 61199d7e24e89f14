#include "core/fabric/routing.hpp"

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

}  // namespace dryfly::fabric
