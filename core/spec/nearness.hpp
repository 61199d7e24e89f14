// What two cores of a node are to each other: of one L3 region, of two on a socket, or of two sockets; how long it
// takes until one sees what the other has written, and what it copies of what the other has in its caches or in its
// memory. From the spec's node.near.*; machines whose processor has no rows have one latency and one rate for all
// cores.
//
// Models docs/model/on-node.md#places. What lies in caches is told by a copy's size: where its source and its target
// fit into a core's second-level cache and an even share of its region's cache among the ranks of the region, they are
// taken to be there. Left out: what else lies there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/spec/fields.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// Of a core within its node.
struct CorePlace {
  std::uint32_t region = 0;
  std::uint32_t socket = 0;
  bool operator==(const CorePlace&) const = default;
};

class Nearness {
 public:
  static constexpr std::size_t distances = 3;
  static constexpr std::size_t across_sockets = 2;
  struct Way {
    Duration latency;  // until one core sees what the other has written
    Rate cached;       // what a core copies of what the other has in its caches
    Rate memory;       // and in its memory
  };

  // Not known: all cores are alike.
  Nearness() = default;
  static Nearness read(const Spec& spec) {
    Nearness result;
    if (!spec.has(fields::node_near_regions)) {
      const Way way{.latency = Duration{spec.number(fields::node_local_latency_ps)},
                    .cached = Rate{spec.number(fields::node_local_rate_bytes_per_s)},
                    .memory = Rate{spec.number(fields::node_local_rate_bytes_per_s)}};
      result.ways_.fill(way);
      if (spec.has(fields::node_cached_bytes)) result.cached_ = Bytes{spec.number(fields::node_cached_bytes)};
      return result;
    }
    result.is_known_ = true;
    for (std::size_t distance = 0; distance < distances; ++distance) {
      result.ways_[distance] = {.latency = Duration{spec.number(fields::node_near_latency_ps, {distance})},
                                .cached = Rate{spec.number(fields::node_near_cached_bytes_per_s, {distance})},
                                .memory = Rate{spec.number(fields::node_near_memory_bytes_per_s, {distance})}};
    }
    result.regions_ = spec.small(fields::node_near_regions);
    result.sockets_ = spec.small(fields::node_near_sockets);
    result.own_ = Bytes{spec.number(fields::node_near_l2_bytes)};
    if (spec.has(fields::node_near_into_region_bytes_per_s)) {
      result.into_region_ = Rate{spec.number(fields::node_near_into_region_bytes_per_s)};
      result.out_of_region_ = Rate{spec.number(fields::node_near_out_of_region_bytes_per_s)};
    }
    result.own_rate_ = Rate{spec.number(fields::node_near_l2_bytes_per_s)};
    result.shared_ = Bytes{spec.number(fields::node_near_l3_bytes)};
    return result;
  }

  bool is_known() const { return is_known_; }
  std::uint32_t sockets() const { return sockets_; }
  // Those into which and out of which cores copy no more than that; 0: as much as they ask for.
  std::uint32_t limited_regions() const { return into_region_.bytes_per_s == 0 ? 0 : regions_; }
  Rate into_region() const { return into_region_; }
  Rate out_of_region() const { return out_of_region_; }
  std::size_t distance(CorePlace one, CorePlace other) const {
    if (!is_known_ || one.region == other.region) return 0;
    return one.socket == other.socket ? 1 : across_sockets;
  }
  const Way& way(std::size_t distance) const { return ways_[distance]; }
  const Way& way(CorePlace one, CorePlace other) const { return ways_[distance(one, other)]; }

  CorePlace of_region(std::uint32_t region) const {
    return {.region = region, .socket = is_known_ ? region * sockets_ / regions_ : 0};
  }
  CorePlace of_core(std::uint32_t core, std::uint32_t cores) const {
    return of_region(is_known_ ? static_cast<std::uint32_t>(std::uint64_t{core} * regions_ / cores) : 0);
  }
  // Of a rank that is not bound: ranks are on L3 regions in blocks.
  CorePlace of_rank(std::uint32_t local, std::uint32_t per_node) const {
    return of_region(is_known_ ? static_cast<std::uint32_t>(std::uint64_t{local} * regions_ / per_node) : 0);
  }
  // What a core copies that is in its own second-level cache, and the longest copy that is.
  Rate own_rate() const { return own_rate_; }
  Bytes own() const { return Bytes{own_.count / 2}; }
  // The longest copy that stays in caches where a node has so many ranks, in blocks on its regions.
  Bytes cached(std::uint32_t per_node) const {
    if (!is_known_) return cached_;
    return cached_of(per_node < regions_ ? 1 : (std::uint64_t{per_node} + regions_ - 1) / regions_);
  }
  // Where so many ranks are bound to cores of the region.
  Bytes cached_of(std::uint64_t ranks_in_region) const {
    return Bytes{(own_.count + shared_.count / ranks_in_region) / 2};
  }

 private:
  bool is_known_ = false;
  std::array<Way, distances> ways_{};
  std::uint32_t regions_ = 1;
  std::uint32_t sockets_ = 1;
  Bytes own_{};  // second-level cache
  Rate own_rate_{};
  Rate into_region_{};
  Rate out_of_region_{};
  Bytes shared_{};
  Bytes cached_{};
};

}  // namespace dryfly
