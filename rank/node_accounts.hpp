// What the ranks of a node, with `--on-node shared`, have moved through its memory, each of its NUMA domains and the
// links between its sockets, and who has written what lies in memory that they share. Whoever uses them goes in turn
// (rank/baton.hpp). In the segment they lie one behind the other: memory, domains, links, writers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory/moved.hpp"
#include "core/memory/written.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class NodeAccounts {
 public:
  using Written = WrittenMemory<wire::CopyPlace>;

  NodeAccounts(wire::SegmentHeader& header, const wire::RankPage& page)
      : costs_(header.copies),
        share_(page.share),
        moved_(reinterpret_cast<MovedMemory*>(reinterpret_cast<char*>(&header) + costs_.accounts_offset +
                                              std::uint64_t{share_.node_of_job} * costs_.accounts_bytes)) {}

  static const wire::RankPage& page_of(const wire::SegmentHeader& header, std::uint32_t rank) {
    return *reinterpret_cast<const wire::RankPage*>(reinterpret_cast<const char*>(&header) + header.rank_area_offset +
                                                    rank * header.rank_area_stride);
  }

  static std::size_t accounts(std::uint32_t domains, std::uint32_t sockets) {
    return 1 + std::size_t{domains} + std::size_t{sockets} * sockets;
  }
  static std::uint64_t bytes(std::uint32_t domains, std::uint32_t sockets) {
    return accounts(domains, sockets) * sizeof(MovedMemory) + sizeof(Written);
  }

  Written& written() { return *reinterpret_cast<Written*>(moved_ + accounts(costs_.domains, costs_.sockets)); }

  // When so many bytes have moved that begin then and take so long by themselves: through the memory of the node,
  // through that domain (as CopyPlace has it) and from socket to socket.
  std::uint64_t through_memory(std::uint64_t begin_ps, std::uint64_t alone_ps, std::uint64_t bytes) {
    return moved(0, costs_.room, begin_ps, alone_ps, bytes);
  }
  std::uint64_t through_domain(std::uint32_t domain, std::uint64_t begin_ps, std::uint64_t alone_ps,
                               std::uint64_t bytes) {
    if (domain == 0 || domain > costs_.domains) return begin_ps;
    return moved(domain, costs_.domain_room[domain - 1], begin_ps, alone_ps, bytes);
  }
  // What a NIC of the rank reads there, of what is too long for caches, or writes; others have what is left.
  void moved_by_nic(std::uint64_t begin_ps, std::uint64_t bytes, bool writes) {
    if (costs_.nic_ps_per_kib == 0 || (!writes && bytes <= costs_.cached)) return;
    const std::uint64_t alone_ps = bytes * costs_.nic_ps_per_kib / 1024;
    through_memory(begin_ps, alone_ps, bytes);
    through_domain(share_.copies_at.domain, begin_ps, alone_ps, bytes);
  }
  std::uint64_t across(std::uint32_t from, std::uint32_t to, std::uint64_t begin_ps, std::uint64_t alone_ps,
                       std::uint64_t bytes) {
    if (from == to || costs_.crossing_room == 0) return begin_ps;
    const std::size_t link = 1 + costs_.domains + std::size_t{from} * costs_.sockets + to;
    return moved_[link].end_of(begin_ps, alone_ps, bytes, costs_.crossing_room);
  }

 private:
  std::uint64_t moved(std::size_t account, std::uint64_t room, std::uint64_t begin_ps, std::uint64_t alone_ps,
                      std::uint64_t bytes) {
    if (room == 0) return begin_ps;
    return moved_[account].end_of(begin_ps, alone_ps, bytes, wire::SlowNode::less(room, share_.slow.memory_ppb));
  }

  const wire::CopyCosts& costs_;
  const wire::NodeShare& share_;
  MovedMemory* moved_;
};

}  // namespace dryfly::rank
