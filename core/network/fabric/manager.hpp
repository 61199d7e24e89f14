// The fabric manager's part in routing: which links the routes avoid, and since when.
//
// A switch knows of its own links at once. Of all others it knows what the manager's last sweeps have told it
// (Sweeps in fault_plan.hpp): a link that has gone down goes on drawing packets, and losing them, until the routes
// without it are deployed. A routing algorithm knows nothing of this; a way that it draws over an avoided link is
// drawn again, and after some tries the manager names the shortest way that is left, if there is one.
//
// Leaves out: that a switch in the middle of a way that is decided chooses anew.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/network/fabric/link_faults.hpp"
#include "core/route/paths.hpp"
#include "core/route/routing.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::fabric {

class Manager {
 public:
  Manager(const Dragonfly& dragonfly, LinkFaults& faults, std::function<Instant()> now)
      : dragonfly_(dragonfly), faults_(faults), now_(std::move(now)) {}

  // Completes the path from `query.source`, where it is to be decided, as `lay_drawn(draw)` does, but by ways in use if
  // there is one.
  template <class LayDrawn>
  void lay_in_use(Path& path, const RouteQuery& query, std::uint32_t draw, const LayDrawn& lay_drawn) {
    constexpr std::uint32_t other_draws = 0x9e3779b9;
    const Path before = path;
    for (std::uint32_t again = 0; again < tries; ++again) {
      path = before;
      lay_drawn(draw + again * other_draws);
      if (!avoids(path, query.source, before.decide_at)) return;
    }
    const Path drawn = path;
    path = before;
    if (!lay_what_is_left(path, query.source, query.target, query.target_port)) path = drawn;
  }

  // Whether routes made at `here` avoid a link of this way now, from that switch's place on it.
  bool avoids(const Path& path, SwitchId here, std::uint32_t from_place) const;
  // Whether the routes that are in force avoid the link that this port drives.
  bool avoids_link(std::uint32_t port) const { return avoids_port(port, false); }
  // By number, the switches to which a way in use is left that is short enough.
  std::vector<bool> reached_from(SwitchId source) const;

 private:
  static constexpr std::uint32_t tries = 8;  // drawing again, before the manager is asked
  struct Step {
    SwitchId at;
    Path path;
  };
  bool avoids_port(std::uint32_t port, bool own) const;
  // By the shortest way in use, if one is left that is short enough.
  bool lay_what_is_left(Path& path, SwitchId here, SwitchId target, std::uint8_t target_port);
  // The shortest way to each switch, the shorter first, until one is the target.
  std::vector<Step> search(SwitchId source, SwitchId target) const;

  const Dragonfly& dragonfly_;
  LinkFaults& faults_;
  std::function<Instant()> now_;
  std::map<std::pair<SwitchId, SwitchId>, Path> found_;  // still good if no link of it is avoided
};

}  // namespace dryfly::fabric
