// Valiant routing (Valiant 1982): every packet goes by way of a third group or switch drawn at random, whatever the
// load. It halves what uniform traffic can have and makes all other traffic behave like uniform traffic.
#include "core/route/algorithms.hpp"

namespace dryfly::fabric {
namespace {

class Valiant final : public Routing {
 public:
  explicit Valiant(const Dragonfly& dragonfly) : dragonfly_(dragonfly) {}
  Way choose(const RouteQuery& query, PacketDraws& draws, const LoadView&) const override {
    // A draw may hit the groups of the packet itself, or one without links: then it is drawn again. A machine may have
    // no third group or switch, so there is an end to it.
    for (int attempt = 0; attempt < 16; ++attempt) {
      const Way way = draw_detour(dragonfly_, query, draws);
      if (is_detour(query, way)) return way;
    }
    return draw_minimal(dragonfly_, query, draws);
  }
  Way go_on(const RouteQuery& query, PacketDraws& draws, const LoadView&) const override {
    return draw_minimal(dragonfly_, query, draws);
  }

 private:
  const Dragonfly& dragonfly_;
};

}  // namespace

std::unique_ptr<Routing> make_valiant(const Spec&, const Dragonfly& dragonfly) {
  return std::make_unique<Valiant>(dragonfly);
}

}  // namespace dryfly::fabric
