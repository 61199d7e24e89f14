// What a copy takes of the parts of a node that its cores share: the memory of the node, each NUMA domain's, and the
// links between sockets, each way. Models docs/model/on-node.md#memory-of-a-node.
//
// All zeros is none, so that it may lie in memory that ranks share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dryfly {

// The parts that a node has, by number: its memory, the domains, the links.
struct SharedParts {
  std::uint32_t domains = 0;
  std::uint32_t sockets = 1;

  static constexpr std::uint32_t memory = 0;
  std::uint32_t domain(std::uint32_t number) const { return 1 + number; }
  std::uint32_t link(std::uint32_t from, std::uint32_t to) const { return 1 + domains + from * sockets + to; }
  std::uint32_t count() const { return 1 + domains + sockets * sockets; }
};

// What a copy is from or to.
struct CopyEnd {
  static constexpr std::uint32_t no_domain = ~std::uint32_t{0};
  std::uint32_t core_socket = 0;
  std::uint32_t memory_socket = 0;
  std::uint32_t domain = no_domain;  // that the memory is bound to
};

class CopyLoads {
 public:
  static constexpr std::size_t most = 5;
  struct Load {
    std::uint32_t part;
    std::uint64_t bytes;
  };

  // Of what lies in the caches of that socket.
  static CopyLoads in_caches(const SharedParts& parts, std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    CopyLoads loads;
    loads.add_link(parts, from, to, bytes);
    return loads;
  }
  // By a core of that socket. Memory that nobody is bound to is the whole node's.
  static CopyLoads through_memory(const SharedParts& parts, std::uint32_t socket, const CopyEnd& from,
                                  const CopyEnd& to, std::uint64_t bytes) {
    CopyLoads loads;
    loads.add(SharedParts::memory, 2 * bytes);  // read and written
    for (const CopyEnd* end : {&from, &to}) {
      if (end->domain < parts.domains) loads.add(parts.domain(end->domain), bytes);
    }
    loads.add_link(parts, from.memory_socket, socket, bytes);
    loads.add_link(parts, socket, to.memory_socket, bytes);
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

  std::array<Load, most> loads_{};
  std::uint32_t count_ = 0;
};

}  // namespace dryfly
