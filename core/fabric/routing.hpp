// The routing decision: which way a packet takes. It is made once, at the switch of its source NIC, when the head is
// about to leave it. An algorithm sees the graph, random draws that belong to the packet, and the load of ports
// through a view; it changes nothing. To add one: write its file, add a line to the registry in routing.cpp.
//
// Leaves out: decisions at later switches (Rosetta may reconsider inside the intermediate group), and the staleness
// of what neighbours tell each other.
#pragma once

#include <cstdint>
#include <memory>

#include "core/fabric/fabric_spec.hpp"
#include "core/fabric/links.hpp"
#include "core/fabric/paths.hpp"
#include "core/unit/random.hpp"

namespace dryfly::fabric {

// The time that a port needs for what it has committed and what waits for it.
class LoadView {
 public:
  explicit LoadView(const Links& links) : links_(links) {}
  std::uint64_t queued_ps(std::uint32_t port) const {
    const Port& seen = links_[port];
    const std::uint64_t now_ps = links_.now_ps();
    return seen.waiting_ps + (seen.busy_until_ps > now_ps ? seen.busy_until_ps - now_ps : 0);
  }

 private:
  const Links& links_;
};

// The random numbers of one packet, two from each draw of its source's stream.
class PacketDraws {
 public:
  PacketDraws(const RandomStream& stream, std::uint64_t sequence) : stream_(stream), next_(sequence * draws_each) {}
  std::uint32_t fraction() {
    if (!half_left_) word_ = stream_.draw(next_++);
    half_left_ = !half_left_;
    return static_cast<std::uint32_t>(half_left_ ? word_ : word_ >> 32);
  }
  // Uniform in [0, bound); the bias is below bound / 2^32.
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>((bound * fraction()) >> 32); }

 private:
  static constexpr std::uint64_t draws_each = 16;
  const RandomStream& stream_;
  std::uint64_t next_;
  std::uint64_t word_ = 0;
  bool half_left_ = false;
};

struct RouteQuery {
  SwitchId source;
  SwitchId target;
  std::uint8_t target_port = 0;
};

class Routing {
 public:
  virtual ~Routing() = default;
  // `source` and `target` differ.
  virtual Way choose(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const = 0;
};

// Throws SpecError for an unknown algorithm.
std::unique_ptr<Routing> make_routing(const FabricSpec& fabric, const Dragonfly& dragonfly);

std::unique_ptr<Routing> make_minimal(const FabricSpec& fabric, const Dragonfly& dragonfly);
std::unique_ptr<Routing> make_adaptive(const FabricSpec& fabric, const Dragonfly& dragonfly);

// A minimal way drawn at random from all there are.
Way draw_minimal(const Dragonfly& dragonfly, const RouteQuery& query, PacketDraws& draws);

}  // namespace dryfly::fabric
