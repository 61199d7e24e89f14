// What the ranks of a node, with `--on-node shared`, have moved through what they share (core/memory/copy_loads.hpp),
// which long copies are under way, and who has written what lies in memory that they share. Whoever uses them goes in
// turn (rank/baton.hpp). In the segment they lie one behind the other: what has moved, by part; writers; long copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory/copy_loads.hpp"
#include "core/memory/long_copies.hpp"
#include "core/memory/moved.hpp"
#include "core/memory/written.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class NodeAccounts {
  // As LongCopies uses them.
  struct Parts {
    const wire::CopyCosts* costs;
    std::uint64_t memory_ppb;  // of a slow node
    MovedMemory* moved;

    SharedParts shared() const {
      return {.domains = costs->domains, .sockets = costs->sockets, .regions = costs->regions};
    }
    std::uint32_t count() const { return shared().count(); }
    MovedMemory& account(std::uint32_t part) const { return moved[part]; }
    std::uint64_t room(std::uint32_t part) const {
      if (part >= shared().out_of(0)) return costs->out_of_region_room;
      if (part >= shared().into(0)) return costs->into_region_room;
      if (part >= shared().link(0, 0)) return costs->crossing_room;
      if (costs->room == 0) return 0;
      const std::uint64_t room = part == SharedParts::memory ? costs->room : costs->domain_room[part - 1];
      return wire::SlowNode::less(room, memory_ppb);
    }
  };

 public:
  using Written = WrittenMemory<wire::Writer>;
  using Copies = LongCopies<Parts>;

  NodeAccounts(wire::SegmentHeader& header, const wire::RankPage& page)
      : costs_(header.copies),
        share_(page.share),
        first_(reinterpret_cast<char*>(&header) + costs_.accounts_offset +
               std::uint64_t{share_.node_of_job} * costs_.accounts_bytes) {}

  static wire::RankPage& page_of(wire::SegmentHeader& header, std::uint32_t rank) {
    return *reinterpret_cast<wire::RankPage*>(reinterpret_cast<char*>(&header) + header.rank_area_offset +
                                              rank * header.rank_area_stride);
  }
  static std::uint32_t rank_of(const wire::SegmentHeader& header, const wire::RankPage& page) {
    const auto offset =
        static_cast<std::uint64_t>(reinterpret_cast<const char*>(&page) - reinterpret_cast<const char*>(&header));
    return static_cast<std::uint32_t>((offset - header.rank_area_offset) / header.rank_area_stride);
  }
  static const wire::RankPage& page_of(const wire::SegmentHeader& header, std::uint32_t rank) {
    return *reinterpret_cast<const wire::RankPage*>(reinterpret_cast<const char*>(&header) + header.rank_area_offset +
                                                    rank * header.rank_area_stride);
  }

  // Of a node with so many ranks.
  static std::uint64_t bytes(const SharedParts& parts, std::uint32_t ranks) {
    return parts.count() * sizeof(MovedMemory) + sizeof(Written) + sizeof(Copies::Clock) + ranks * sizeof(LongCopy);
  }

  SharedParts parts() const {
    return {.domains = costs_.domains, .sockets = costs_.sockets, .regions = costs_.regions};
  }
  Written& written() { return *reinterpret_cast<Written*>(first_ + parts().count() * sizeof(MovedMemory)); }
  std::span<LongCopy> places() {
    return {reinterpret_cast<LongCopy*>(reinterpret_cast<char*>(&written()) + sizeof(Written) + sizeof(Copies::Clock)),
            share_.ranks_on_node};
  }
  Copies copies() {
    auto& clock = *reinterpret_cast<Copies::Clock*>(reinterpret_cast<char*>(&written()) + sizeof(Written));
    return {clock, places(), Parts{&costs_, share_.slow.memory_ppb, reinterpret_cast<MovedMemory*>(first_)}};
  }

  // The longest copy of a rank that stays in caches.
  static std::uint64_t cached(const wire::SegmentHeader& header, std::uint32_t rank) {
    return cached(header.copies, page_of(header, rank).share);
  }
  std::uint64_t cached() const { return cached(costs_, share_); }
  // Of what the rank copies, or has a NIC read.
  bool stays_in_caches(std::uint64_t bytes) const { return bytes <= cached(); }
  // What a NIC of the rank reads there, of what is too long for caches, or writes; others have what is left.
  void moved_by_nic(std::uint64_t begin_ps, std::uint64_t bytes, bool writes) {
    if (costs_.nic_ps_per_kib == 0 || (!writes && stays_in_caches(bytes))) return;
    const std::uint64_t alone_ps = bytes * costs_.nic_ps_per_kib / 1024;
    const std::uint32_t here = share_.copies_at.memory_socket;
    copies().take_first(begin_ps, alone_ps, CopyLoads::by_nic(parts(), domain_of(share_.copies_at), here, here, bytes));
  }

  static std::uint32_t domain_of(const wire::CopyPlace& place) {
    return place.domain == 0 ? CopyEnd::no_domain : place.domain - 1;
  }
  // Of a place that is known.
  static CopyCore core_of(const wire::CopyPlace& place) {
    return {.region = place.region - 1U, .socket = place.socket};
  }
  static CopyEnd end_of(const wire::CopyPlace& place) {
    return {.memory_socket = place.memory_socket, .domain = domain_of(place)};
  }

 private:
  static std::uint64_t cached(const wire::CopyCosts& costs, const wire::NodeShare& share) {
    return share.cached != 0 ? share.cached : costs.cached;
  }

  const wire::CopyCosts& costs_;
  const wire::NodeShare& share_;
  char* first_;
};

}  // namespace dryfly::rank
