// The routing decisions: which way a packet takes. The switch of its source NIC chooses between the minimal ways and
// detours when the head is about to leave it, as published of Slingshot (docs/model/routing.md#adaptive-routing). A
// detour by a third group goes on by the decision of the switch where it enters that group: only there the load of
// the links onward is known. Unordered packets are decided one by one, those of an ordered flow as its first was,
// until the flow leaves a loaded way.
//
// An algorithm sees the graph, random draws that belong to the packet, and the load of ports through a view of what
// that switch can know; it changes nothing. To add one called NAME, write core/route/NAME.cpp with `make_NAME`,
// add its row to the registry, python/dryfly/machine/routing.py, and run tool/generate.py.
//
// Leaves out: changing from a minimal way to a detour at a later switch (the predecessor's progressive routing).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/route/paths.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/random.hpp"

namespace dryfly::fabric {

// The load of ports as a switch knows it, as the time that a port needs for what it has: its own as it is, that of
// the others as they told it some time ago, with the acknowledgements that pass
// (docs/model/routing.md#load-of-other-switches). Ports are numbered over the machine, as in the topology.
class LoadView {
 public:
  virtual std::uint64_t own_ps(std::uint32_t port) const = 0;
  virtual std::uint64_t other_ps(std::uint32_t port) const = 0;
  // Whether to look at a port takes as long as memory does. Then an algorithm does well to name all ports that it may
  // ask for, before it asks for the first. Changes nothing but time.
  virtual bool is_far() const { return false; }
  virtual void prefetch(std::uint32_t /*port*/) const {}

 protected:
  ~LoadView() = default;
};

// The random numbers of one packet at the switch of that place on its path, two from each word.
class PacketDraws {
 public:
  PacketDraws(std::uint32_t draw, std::uint32_t place)
      : next_((static_cast<std::uint64_t>(draw) << 32) + std::uint64_t{draws_each} * place) {}
  std::uint32_t fraction() {
    if (!half_left_) word_ = mix(next_++);
    half_left_ = !half_left_;
    return static_cast<std::uint32_t>(half_left_ ? word_ : word_ >> 32);
  }
  // Uniform in [0, bound); the bias is below bound / 2^32.
  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>((bound * fraction()) >> 32); }

 private:
  static constexpr std::uint32_t draws_each = 64;
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
  // At the source switch; `source` and `target` differ.
  virtual Way choose(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const = 0;
  // At `query.source`, the switch where a detour enters a third group.
  virtual Way go_on(const RouteQuery& query, PacketDraws& draws, const LoadView& load) const = 0;
  // At the source switch: whether an ordered flow on that way should wait until nothing of it is under way and then
  // choose anew (docs/model/routing.md#draining-a-flow). `leaving_ps`: what of the way's load goes with flows that are
  // leaving it already; without that all would leave at once, and come back together.
  virtual bool should_leave(const RouteQuery& /*query*/, const Way& /*current*/, std::uint64_t /*leaving_ps*/,
                            PacketDraws& /*draws*/, const LoadView& /*load*/) const {
    return false;
  }
};

// What the simulator knows of a row of the registry; core/route/algorithms.hpp has all of them. An algorithm reads
// the fields of its own from the spec and throws SpecError.
struct Algorithm {
  std::string_view name;
  std::unique_ptr<Routing> (*make)(const Spec& spec, const Dragonfly& dragonfly);
};

// The algorithm that the spec names. Throws SpecError.
std::unique_ptr<Routing> make_routing(const Spec& spec, const Dragonfly& dragonfly);

// A minimal way drawn at random from all there are.
Way draw_minimal(const Dragonfly& dragonfly, const RouteQuery& query, PacketDraws& draws);
// A way by a third group, or by a third switch of the one group, drawn at random; a minimal way if the draw hit none
// that is of use.
Way draw_detour(const Dragonfly& dragonfly, const RouteQuery& query, PacketDraws& draws);
bool is_detour(const RouteQuery& query, const Way& way);

}  // namespace dryfly::fabric
