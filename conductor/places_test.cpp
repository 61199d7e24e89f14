#include "conductor/places.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace dryfly {
namespace {

constexpr std::uint64_t GB = 1'000'000'000;
constexpr std::uint64_t whole_ppb = 1'000'000'000;

// Two sockets of four cores with two threads each, NUMA domains 0 and 1 of 200 GB/s; memory of 800 GB/s behind them, 2
// and 3; a NIC on each socket, and 100 GB/s between the two.
constexpr char node[] =
    "host.compute_mode model\nnode.cores 8\nnode.threads 2\nnode.domains 4\nnode.nics 2\nnode.nic.0.socket "
    "0\nnode.nic.1.socket 1\n"
    "node.socket_rate_bytes_per_s 100000000000\n"
    "node.domain.0.socket 0\nnode.domain.0.cores 4\nnode.domain.0.rate_bytes_per_s 200000000000\n"
    "node.domain.1.socket 1\nnode.domain.1.cores 4\nnode.domain.1.rate_bytes_per_s 200000000000\n"
    "node.domain.2.socket 0\nnode.domain.2.cores 0\nnode.domain.2.rate_bytes_per_s 800000000000\n"
    "node.domain.3.socket 1\nnode.domain.3.cores 0\nnode.domain.3.rate_bytes_per_s 800000000000\n";

wire::NodePlace at(std::uint64_t processors, std::uint64_t memories = 0) {
  wire::NodePlace place{};
  place.processors[0] = processors;
  place.memories = memories;
  return place;
}

// Four L3 regions of two cores.
constexpr char near_rows[] =
    "node.near.0.latency_ps 40\nnode.near.0.cached_bytes_per_s 1024000000\nnode.near.0.memory_bytes_per_s 512000000\n"
    "node.near.1.latency_ps 200\nnode.near.1.cached_bytes_per_s 512000000\nnode.near.1.memory_bytes_per_s 512000000\n"
    "node.near.2.latency_ps 400\nnode.near.2.cached_bytes_per_s 256000000\nnode.near.2.memory_bytes_per_s 256000000\n"
    "node.near.regions 4\nnode.near.sockets 2\nnode.near.l2_bytes 0\nnode.near.l2_bytes_per_s "
    "1024000000\nnode.near.l3_bytes 0\n";
constexpr char alike[] = "node.local_latency_ps 300\nnode.local_rate_bytes_per_s 1000000000\n";

struct Node {
  std::vector<Rank> ranks;
  std::vector<wire::RankPage> pages;
  Rate limit{};
  Places places;

  explicit Node(const std::vector<wire::NodePlace>& wanted, const std::string& copies = alike)
      : ranks(wanted.size()),
        pages(wanted.size()),
        places(Spec::parse(node + copies), ranks, [this](NodeId, Rate rate) { limit = rate; }) {
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].page = &pages[rank];
      ranks[rank].id = RankId{rank};
      places.take(ranks[rank], wanted[rank]);
    }
  }
  const wire::NodeShare& settled(std::uint32_t rank) {
    places.settle(NodeId{}, 0);
    return ranks[rank].seat.share;
  }
};

}  // namespace

TEST_CASE("where nobody is bound nothing is settled, and memory is where the spec has the rank") {
  Node node({at(0), at(0)});
  node.ranks[1].socket = 1;
  node.places.settle_all(0);
  CHECK(node.ranks[0].seat.coming.empty());
  const MemoryPlace place = node.places.memory_place(node.ranks[1], 0);
  CHECK(place.socket == 1);
  CHECK(place.nic_socket == 0);
  CHECK(place.processor_socket == MemoryPlace::with_memory);
}

TEST_CASE("a rank's memory is beside its core, or of those that it is bound to the nearest") {
  Node node({at(0x10), at(0x10, 0b1000), at(0x10, 0b0011), at(0x10, 0b0101), at(0x1, 0b1110)});
  const std::vector<std::uint32_t> wanted{1, 3, 1, 0, 2};
  for (std::uint32_t rank = 0; rank < wanted.size(); ++rank) {
    CHECK(node.places.memory_of(node.ranks[rank]) == wanted[rank]);
  }
  const MemoryPlace across = node.places.memory_place(node.ranks[3], 1);
  CHECK(across.socket == 0);  // its memory, where its processor and the NIC are on the other
  CHECK(across.processor_socket == 1);
}

TEST_CASE("ranks on one core share it, also on two threads of it; those that have others to go to do not") {
  Node same({at(0x1), at(0x1), at(0x2)});
  CHECK(same.settled(0).others_on_core == 1);
  CHECK(same.ranks[1].seat.share.others_on_core == 1);
  CHECK(same.ranks[2].seat.share.others_on_core == 0);
  Node threads({at(0x1), at(0x100)});
  CHECK(threads.settled(0).others_on_core == 1);
  Node wide({at(0x3), at(0x3), at(0x3)});
  CHECK(wide.settled(0).others_on_core == 1);
  CHECK(wide.ranks[1].seat.share.others_on_core == 0);
  CHECK(wide.ranks[2].seat.share.others_on_core == 1);
  Node fitting({at(0x3), at(0x1)});  // the one with a single core has it, the other takes its second
  CHECK(fitting.settled(0).others_on_core == 0);
  CHECK(fitting.ranks[0].seat.core == 1);
}

TEST_CASE("computing has the rank's cores, and those of several an even share of them") {
  Node node({at(0x1), at(0x6), at(0xf0), at(0xf0)});
  CHECK(node.settled(0).operations_ppb == whole_ppb / 8);
  CHECK(node.ranks[1].seat.share.operations_ppb == whole_ppb / 4);
  CHECK(node.ranks[2].seat.share.operations_ppb == whole_ppb / 4);  // four cores of eight, for two
  Node same({at(0x1), at(0x1)});
  CHECK(same.settled(0).operations_ppb == whole_ppb / 8);  // while it has the core
}

TEST_CASE("a memory is shared by those that use it, and one across has what the link carries") {
  Node node({at(0x1), at(0x2), at(0x10, 0b1000), at(0x20, 0b0100)});
  CHECK(node.settled(0).memory_bytes_per_s == 100 * GB);
  CHECK(node.ranks[2].seat.share.memory_bytes_per_s == 800 * GB);
  CHECK(node.ranks[3].seat.share.memory_bytes_per_s == 100 * GB);
  CHECK(node.limit.bytes_per_s == 100 * GB);  // no NIC crosses, so nobody is held to it
  // With a NIC whose payloads cross they have half of it.
  Node with_nic({at(0x10, 0b0001), at(0x20, 0b0001)});
  with_nic.ranks[0].seat.nics = 0b10;
  CHECK(with_nic.settled(0).memory_bytes_per_s == 25 * GB);
  CHECK(with_nic.limit.bytes_per_s == 50 * GB);
  // And all of it again when that one's memory is on its NIC's socket.
  with_nic.places.take(with_nic.ranks[0], at(0x10, 0b0010));
  with_nic.places.settle(NodeId{}, 0);
  CHECK(with_nic.ranks[1].seat.coming.back().second.memory_bytes_per_s == 100 * GB);
}

TEST_CASE("ranks see one another's writing by where their cores are, or where the spec has them") {
  Node bound({at(0x1), at(0x2), at(0x4), at(0x80)}, near_rows);
  CHECK(bound.places.latency(bound.ranks[0], bound.ranks[1]) == Duration{40});
  CHECK(bound.places.latency(bound.ranks[0], bound.ranks[2]) == Duration{200});
  CHECK(bound.places.latency(bound.ranks[3], bound.ranks[0]) == Duration{400});
  CHECK(bound.places.memory_place(bound.ranks[3], 0).core_region == 3);
  Node free({at(0), at(0)}, near_rows);
  free.ranks[1].region = 2;
  CHECK(free.places.latency(free.ranks[0], free.ranks[1]) == Duration{400});
  CHECK(free.places.memory_place(free.ranks[1], 0).core_socket == 1);
  Node same({at(0x1), at(0x80)});
  CHECK(same.places.latency(same.ranks[0], same.ranks[1]) == Duration{300});
}

TEST_CASE("ranks that are bound share the cache of their region with those who are bound there, and with no others") {
  Node node({at(0x1), at(0x2), at(0x4), at(0x1)}, near_rows);
  const std::uint64_t three = node.settled(0).cached;
  const std::uint64_t alone = node.settled(2).cached;
  const Nearness near = Nearness::read(Spec::parse(near_rows));
  CHECK(three == near.cached_of(3).count);
  CHECK(alone == near.cached_of(1).count);
  CHECK(node.places.memory_place(node.ranks[1], 0).ranks_in_region == 3);
  Node free({at(0), at(0)}, near_rows);
  CHECK(free.settled(0).cached == 0);
}

TEST_CASE("of what nobody knows whose it is a rank copies as in the mean with the others of its node") {
  Node free({at(0), at(0), at(0)}, near_rows);
  free.ranks[2].region = 1;
  free.places.settle_all(0);
  CHECK(free.pages[0].share.cached_ps_per_kib == 1'500'000);  // 1 us with one, 2 with the other
  CHECK(free.pages[2].share.cached_ps_per_kib == 2'000'000);
  CHECK(free.pages[2].share.copied_ps_per_kib == 2'000'000);
  CHECK(free.pages[2].share.copies_at.region == 2);
  CHECK(free.pages[2].share.copies_at.domain == 0);
  Node bound({at(0x1), at(0x40)}, near_rows);
  CHECK(bound.settled(0).cached_ps_per_kib == 4'000'000);
  CHECK(bound.settled(0).across_ppb == whole_ppb);  // the one other is on the other socket
  const wire::CopyPlace at_last = bound.ranks[1].seat.share.copies_at;
  CHECK(at_last.region == 4);
  CHECK(at_last.socket == 1);
  CHECK(at_last.memory_socket == 1);
  CHECK(at_last.domain == 2);
  Node afar({at(0x1, 0b1000)}, near_rows);
  CHECK(afar.settled(0).copies_at.socket == 0);
  CHECK(afar.settled(0).copies_at.memory_socket == 1);
  CHECK(free.pages[0].share.across_ppb == 0);
  Node alone({at(0)}, near_rows);
  alone.places.settle_all(0);
  CHECK(alone.pages[0].share.cached_ps_per_kib == 1'000'000);
  Node same({at(0), at(0)});
  same.places.settle_all(0);
  CHECK(same.pages[0].share.cached_ps_per_kib == 0);
}

}  // namespace dryfly
