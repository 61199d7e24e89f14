// What a copy takes of the parts of a node that its cores share: the memory of the node, each NUMA domain's, the links
// between sockets, each way, and the ways into each L3 region and out of it. Models
// docs/model/on-node.md#memory-of-a-node.
//
// All zeros is none, so that it may lie in memory that ranks share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dryfly {

// The parts that a node has, by number: its memory, the domains, the links, and two for each region.
struct SharedParts {
  std::uint32_t domains = 0;
  std::uint32_t sockets = 1;
  std::uint32_t regions = 0;  // 0: their ways in and out carry what anybody asks for

  static constexpr std::uint32_t memory = 0;
  std::uint32_t domain(std::uint32_t number) const { return 1 + number; }
  std::uint32_t link(std::uint32_t from, std::uint32_t to) const { return 1 + domains + from * sockets + to; }
  std::uint32_t into(std::uint32_t region) const { return 1 + domains + sockets * sockets + region; }
  std::uint32_t out_of(std::uint32_t region) const { return into(regions) + region; }
  std::uint32_t count() const { return into(2 * regions); }
};

// Whose caches have what is copied, or who copies.
struct CopyCore {
  std::uint32_t region = 0;
  std::uint32_t socket = 0;
};

// The memory that a copy is from or to.
struct CopyEnd {
  static constexpr std::uint32_t no_domain = ~std::uint32_t{0};
  std::uint32_t memory_socket = 0;
  std::uint32_t domain = no_domain;  // that the memory is bound to
};

class CopyLoads {
 public:
  static constexpr std::size_t most = 7;
  struct Load {
    std::uint32_t part;
    std::uint64_t bytes;
  };

  // Out of the caches of one to those of the other.
  static CopyLoads in_caches(const SharedParts& parts, const CopyCore& from, const CopyCore& to, std::uint64_t bytes) {
    CopyLoads loads;
    loads.add_link(parts, from.socket, to.socket, bytes);
    if (from.region != to.region) {
      loads.add_way(parts, parts.out_of(from.region), bytes);
      loads.add_way(parts, parts.into(to.region), bytes);
    }
    return loads;
  }
  // By that core. Memory that nobody is bound to is the whole node's.
  static CopyLoads through_memory(const SharedParts& parts, const CopyCore& core, const CopyEnd& from,
                                  const CopyEnd& to, std::uint64_t bytes) {
    CopyLoads loads;
    loads.add(SharedParts::memory, 2 * bytes);  // read and written
    for (const CopyEnd* end : {&from, &to}) {
      if (end->domain < parts.domains) loads.add(parts.domain(end->domain), bytes);
    }
    loads.add_link(parts, from.memory_socket, core.socket, bytes);
    loads.add_link(parts, core.socket, to.memory_socket, bytes);
    loads.add_way(parts, parts.into(core.region), bytes);
    loads.add_way(parts, parts.out_of(core.region), bytes);
    return loads;
  }
  // What a NIC reads out of memory or writes there.
  static CopyLoads by_nic(const SharedParts& parts, std::uint32_t domain, std::uint32_t from, std::uint32_t to,
                          std::uint64_t bytes) {
    CopyLoads loads;
    loads.add(SharedParts::memory, bytes);
    if (domain < parts.domains) loads.add(parts.domain(domain), bytes);
    loads.add_link(parts, from, to, bytes);
    return loads;
  }

  void add(std::uint32_t part, std::uint64_t bytes) { loads_[count_++] = {part, bytes}; }
  const Load* begin() const { return loads_.data(); }
  const Load* end() const { return loads_.data() + count_; }

 private:
  void add_link(const SharedParts& parts, std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    if (from != to) add(parts.link(from, to), bytes);
  }
  void add_way(const SharedParts& parts, std::uint32_t part, std::uint64_t bytes) {
    if (parts.regions != 0) add(part, bytes);
  }

  std::array<Load, most> loads_{};
  std::uint32_t count_ = 0;
};

}  // namespace dryfly
