// Minimal routing: one of the minimal ways at random, whatever the load.
#include "core/route/algorithms.hpp"

namespace dryfly::fabric {
namespace {

class Minimal final : public Routing {
 public:
  explicit Minimal(const Dragonfly& dragonfly) : dragonfly_(dragonfly) {}
  Way choose(const RouteQuery& query, PacketDraws& draws, const LoadView&) const override {
    return draw_minimal(dragonfly_, query, draws);
  }
  Way go_on(const RouteQuery& query, PacketDraws& draws, const LoadView&) const override {
    return draw_minimal(dragonfly_, query, draws);
  }

 private:
  const Dragonfly& dragonfly_;
};

}  // namespace

std::unique_ptr<Routing> make_minimal(const Spec&, const Dragonfly& dragonfly) {
  return std::make_unique<Minimal>(dragonfly);
}

}  // namespace dryfly::fabric
