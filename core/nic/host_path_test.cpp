#include "core/nic/host_path.hpp"

#include "testing/test_stand.hpp"

using namespace dryfly;
using namespace dryfly::nic;

namespace {

// A link carries a byte in 40 ps, the bus a byte in 25 ps: one NIC has what it wants, of two each has a byte in 50 ps.
NicSpec shared_bus() {
  NicSpec spec = TestStand::round_figures();
  spec.pcie_rate = {40'000'000'000};
  spec.link_rate = {25'000'000'000};
  return spec;
}

constexpr Bytes size{100'000};  // 4,000 ns on the link, 5,000 ns at half of the bus

Transfer fetch(std::uint32_t handle) { return {NicId{0}, NicId{9}, size, handle}; }

}  // namespace

TEST_CASE("one NIC is not slowed by the bus: it fetches at the rate of its link") {
  const NicSpec spec = shared_bus();
  HostPaths paths(spec);
  const auto place = paths.place(NicId{0}, NodeId{0}, {});
  REQUIRE(paths.queue(place.lane, fetch(1), Instant{0}));
  CHECK(paths.take(place.lane, Instant{0}).until == Instant{4000 * ns});
  CHECK_FALSE(paths.queue(place.lane, fetch(2), Instant{0}));
  CHECK_FALSE(paths.has_slot(place.lane, Instant{3999 * ns}));
  REQUIRE(paths.has_slot(place.lane, Instant{4000 * ns}));
  const auto slot = paths.take(place.lane, Instant{4000 * ns});
  CHECK(slot.fetch.handle == 2);
  CHECK(slot.until == Instant{8000 * ns});
}

TEST_CASE("two NICs at work on one bus get half of it each") {
  const NicSpec spec = shared_bus();
  HostPaths paths(spec);
  const auto first = paths.place(NicId{0}, NodeId{0}, {});
  const auto second = paths.place(NicId{1}, NodeId{0}, {});
  paths.queue(first.lane, fetch(1), Instant{0});
  paths.queue(second.lane, fetch(2), Instant{0});
  CHECK(paths.take(first.lane, Instant{0}).until == Instant{4000 * ns});
  CHECK(paths.take(second.lane, Instant{0}).until == Instant{5000 * ns});
  // Long after, all are idle.
  paths.queue(first.lane, fetch(3), Instant{90'000 * ns});
  CHECK(paths.take(first.lane, Instant{90'000 * ns}).until == Instant{94'000 * ns});
}

TEST_CASE("NICs of another socket or node have a bus of their own") {
  const NicSpec spec = shared_bus();
  HostPaths paths(spec);
  const auto first = paths.place(NicId{0}, NodeId{0}, {});
  const auto socket = paths.place(NicId{1}, NodeId{0}, {.socket = 1, .nic_socket = 1});
  const auto node = paths.place(NicId{2}, NodeId{1}, {});
  for (const auto& place : {first, socket, node}) {
    paths.queue(place.lane, fetch(1), Instant{0});
    CHECK(paths.take(place.lane, Instant{0}).until == Instant{4000 * ns});
  }
}

TEST_CASE("what arrives at two NICs is in memory when half of the bus has carried it") {
  const NicSpec spec = shared_bus();
  HostPaths paths(spec);
  const auto first = paths.place(NicId{0}, NodeId{0}, {});
  const auto second = paths.place(NicId{1}, NodeId{0}, {});
  // Both came off their links from 5,000 to 9,000; the first was alone when it began.
  CHECK(paths.arrival_lag(first.lane, Instant{9000 * ns}, size) == Duration{});
  CHECK(paths.arrival_lag(second.lane, Instant{9000 * ns}, size) == Duration{1000 * ns});
  // The next one of the second came from 9,000 to 13,000, of which the bus was busy with the one before for 1,000.
  CHECK(paths.arrival_lag(second.lane, Instant{13'000 * ns}, size) == Duration{1000 * ns});
  // A small one goes between.
  CHECK(paths.arrival_lag(second.lane, Instant{13'000 * ns}, Bytes{2048}) == Duration{});
}

namespace {

// End-point 4 is on a node of its own, on another socket than its NIC.
struct FarStand {
  static NicSpec spec() {
    NicSpec spec = TestStand::round_figures();
    spec.socket_latency = {7 * ns};
    return spec;
  }
  TestStand stand{spec()};
  FarStand() {
    stand.nics.open_endpoint(EndpointId{4}, NicId{3}, NodeId{2}, {}, {.socket = 0, .nic_socket = 1});
    stand.nics.receive(receive_of(0, 10));
    stand.nics.receive(receive_of(4, 14));
  }
};

}  // namespace

TEST_CASE("what arrives for a NIC on the other socket is late by one way between the sockets") {
  FarStand far;
  far.stand.nics.send(message(0, 4, 8, 1));
  far.stand.run();
  // egress 100, flight 1,000, ingress 200
  CHECK(far.stand.log == TestStand::Log{"1307 received 1 in 14 at 4", "2000 sent 1 from 0"});
}

TEST_CASE("an inline command to a far NIC goes between the sockets once, a fetched payload three times") {
  FarStand far;
  far.stand.nics.send(message(4, 0, 8, 1));
  far.stand.run();
  CHECK(far.stand.log.front() == "1307 received 1 in 10 at 0");
  FarStand other;
  other.stand.nics.send(message(4, 0, 4096, 1));
  other.stand.run();
  CHECK(other.stand.log.front() == "1621 received 1 in 10 at 0");  // with 300 for the read
}

TEST_CASE("a rendezvous fetches its payload over both ways of the far NIC") {
  FarStand far;
  far.stand.nics.send(message(4, 0, 100'000, 1));
  far.stand.run();
  // The request with its head as any fetched payload: 1,621. The Get flies 1,000, fetches in 300 + 2 x 7, flies 1,000
  // and is placed in 200.
  CHECK(far.stand.log.front() == "4135 received 1 in 10 at 0");
}
