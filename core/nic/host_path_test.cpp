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

constexpr Bytes packet{2000};  // 80 ns on the link, 50 ns on the bus

struct Rig {
  NicSpec spec = shared_bus();
  Engine engine;
  CounterBank counters{engine};
  HostPaths paths{spec, counters};
  MemoryPath first = paths.place(NicId{0}, NodeId{0}, {});

  void took(std::uint32_t nic, std::uint64_t at_ns) { paths.took(NicId{nic}, 0, packet, Instant{at_ns * ns}); }
  Duration lag(const MemoryPath& place, std::uint64_t at_ns) const {
    return paths.arrival_lag(place.lane, Instant{at_ns * ns});
  }
};

}  // namespace

TEST_CASE("what arrives at one NIC is in memory at once: the bus carries it while it comes in") {
  Rig rig;
  for (std::uint64_t at = 80; at <= 8000; at += 80) {
    rig.took(0, at);
    CHECK(rig.lag(rig.first, at) == Duration{});
  }
}

TEST_CASE("packets that arrive at two NICs at a time wait for each other on a bus that is slower than both") {
  Rig rig;
  const MemoryPath second = rig.paths.place(NicId{1}, NodeId{0}, {});
  // In each 80 ns two packets come that take 100.
  for (std::uint64_t turn = 1; turn <= 10; ++turn) {
    rig.took(0, 80 * turn);
    CHECK(rig.lag(rig.first, 80 * turn) == Duration{(turn < 3 ? 0 : 20 * turn - 50) * ns});
    rig.took(1, 80 * turn);
    CHECK(rig.lag(second, 80 * turn) == Duration{20 * turn * ns});
  }
  // Long after, the bus is idle.
  rig.took(1, 90'000);
  CHECK(rig.lag(second, 90'000) == Duration{});
}

TEST_CASE("the time in which others have the bus is counted for the NIC that waits, once, and in cycles") {
  Rig rig;
  const MemoryPath second = rig.paths.place(NicId{1}, NodeId{0}, {});
  CHECK(second.lane == 1);
  // As above: a packet of each begins with its first byte 80 ns before it is there; the bus is free 100 ns after it was
  // when the round before began, and that is 20 ns later in each round.
  std::uint64_t waited = 0;   // of the first NIC: from the beginning of its packet until the bus is free
  std::uint64_t free_at = 0;  // of the bus
  std::uint64_t counted = 0;  // until when the first NIC has been counted
  for (std::uint64_t turn = 1; turn <= 10; ++turn) {
    const std::uint64_t began = 80 * (turn - 1);
    if (free_at > std::max(began, counted)) waited += free_at - std::max(began, counted);
    counted = std::max(counted, free_at);
    rig.took(0, 80 * turn);
    rig.took(1, 80 * turn);
    free_at = std::max(free_at, began) + 100;
  }
  const std::vector<NicCounters> counters = rig.counters.sorted();
  const auto blocked = [&](std::size_t nic) {
    return counters[nic].values[static_cast<std::size_t>(Counter::parbs_tarb_pi_posted_blocked_cnt)];
  };
  CHECK(blocked(0) == waited);
  CHECK(waited == 700);  // 20, 40, 60 and 80 ns, and from the sixth packet on all of the 100 ns of each round
  CHECK(blocked(1) > blocked(0));
}

TEST_CASE("the time in which a slow NIC is at the packet before counts as blocked") {
  Rig rig;
  rig.spec.slow_nics[NicId{1}] = Rate{packet.count * 1'000'000'000 / 160};  // a packet in 160 ns
  HostPaths paths(rig.spec, rig.counters);
  paths.place(NicId{0}, NodeId{0}, {});
  paths.place(NicId{1}, NodeId{0}, {});
  // A packet each 100 ns, which the bus takes at once: the n-th waits for the one before.
  std::uint64_t waited = 0, free_at = 0, counted = 0;
  for (std::uint64_t turn = 0; turn < 5; ++turn) {
    const std::uint64_t begin = 100 * turn;
    if (free_at > std::max(begin, counted)) waited += free_at - std::max(begin, counted);
    counted = std::max(counted, free_at);
    paths.sends(NicId{1}, 0, packet, Instant{begin * ns});
    free_at = std::max(free_at, begin) + 160;
  }
  const std::vector<NicCounters> counters = rig.counters.sorted();
  CHECK(waited == 500);  // 60 and 120 ns, and then the whole of a packet each time
  CHECK(counters[1].values[static_cast<std::size_t>(Counter::parbs_tarb_pi_non_posted_blocked_cnt)] == waited);
}

TEST_CASE("a NIC that sends waits for the bus when it is two packets of each NIC ahead") {
  Rig rig;
  rig.spec.framing.payload_max = packet;
  HostPaths paths(rig.spec, rig.counters);
  paths.place(NicId{0}, NodeId{0}, {});
  paths.place(NicId{1}, NodeId{0}, {});
  // Together they choose four packets at once, which the bus carries in 200 ns.
  for (const std::uint32_t nic : {0U, 1U, 0U, 1U}) {
    CHECK(paths.may_send(NicId{nic}) == Instant{});
    paths.sends(NicId{nic}, 0, packet, Instant{});
  }
  CHECK(paths.may_send(NicId{1}) == Instant{});
  paths.sends(NicId{1}, 0, packet, Instant{});
  CHECK(paths.may_send(NicId{1}) == Instant{50 * ns});
  CHECK(paths.may_send(NicId{0}) == Instant{});
}

TEST_CASE("what comes in a piece has the time in which it came, however many come at a time") {
  NicSpec spec = TestStand::round_figures();
  spec.link_rate = {25'000'000'000};  // a packet in 80 ns
  spec.gpu_link = {40'000'000'000};   // and in 50
  struct Nothing final : Handler {
    void handle(Event) override {}
  } nothing;
  Engine engine;
  engine.attach(ComponentClass::host, nothing);
  CounterBank counters{engine};
  HostPaths paths(spec, counters);
  for (const std::uint32_t nic : {0U, 1U}) paths.place(NicId{nic}, NodeId{0}, {});
  const auto lag_at = [&](std::uint64_t at_ns, std::uint32_t nic) {
    engine.schedule(Instant{at_ns * ns}, static_cast<std::uint64_t>(ComponentClass::host) << component_class_shift);
    engine.run(never);
    return paths.writing_lag(NicId{nic}, 1, packet).ps / ns;
  };
  CHECK(lag_at(1000, 0) == 0);
  // Four of one NIC that have come among each other, as its link brings them: in 320 ns, of which the GPU's takes 200.
  for (int n = 0; n < 4; ++n) CHECK(lag_at(2000, 0) == 0);
  // Two by two NICs: the GPU's link began with them 160 ns before and has 200 to do.
  CHECK(lag_at(3000, 0) == 0);
  CHECK(lag_at(3000, 1) == 20);
  CHECK(lag_at(3000, 0) == 0);
  CHECK(lag_at(3000, 1) == 40);
  // Without a link of the GPU's there is nothing to wait for.
  spec.gpu_link = {};
  HostPaths free(spec, counters);
  free.place(NicId{0}, NodeId{0}, {});
  CHECK(free.writing_lag(NicId{0}, 1, packet) == Duration{});
}

TEST_CASE("what NICs read of a GPU waits for its link only, and so does what they send behind it") {
  NicSpec spec = TestStand::round_figures();
  spec.framing.payload_max = packet;
  spec.link_rate = {25'000'000'000};
  spec.gpu_link = {40'000'000'000};
  Engine engine;
  CounterBank counters{engine};
  HostPaths paths(spec, counters);
  for (const std::uint32_t nic : {0U, 1U}) paths.place(NicId{nic}, NodeId{0}, {});
  CHECK(!paths.concerns({.source = NicId{0}, .target = NicId{1}}));
  CHECK(paths.concerns({.source = NicId{0}, .target = NicId{1}, .source_memory = 1}));
  for (int n = 0; n < 9; ++n) paths.sends(NicId{0}, 0, packet, Instant{});  // of the host's memory
  CHECK(paths.may_send(NicId{0}) == Instant{});
  for (const std::uint32_t nic : {0U, 1U, 0U, 1U, 0U}) {
    CHECK(paths.may_send(NicId{nic}) == Instant{});
    paths.sends(NicId{nic}, 2, packet, Instant{});
  }
  CHECK(paths.may_send(NicId{0}) == Instant{50 * ns});  // five take 250 ns, and the two are four packets ahead
  CHECK(paths.may_send(NicId{1}) == Instant{});
  paths.sends(NicId{1}, 1, packet, Instant{});  // another GPU
  CHECK(paths.may_send(NicId{1}) == Instant{});
}

TEST_CASE("NICs of another socket or node have a bus of their own, and one that no end-point is on has none") {
  Rig rig;
  const MemoryPath socket = rig.paths.place(NicId{1}, NodeId{0}, {.socket = 1, .nic_socket = 1});
  const MemoryPath node = rig.paths.place(NicId{2}, NodeId{1}, {});
  for (const std::uint32_t nic : {0U, 1U, 2U, 3U, 3U, 3U}) rig.took(nic, 80);
  CHECK(rig.lag(rig.first, 80) == Duration{});
  CHECK(rig.lag(socket, 80) == Duration{});
  CHECK(rig.lag(node, 80) == Duration{});
  CHECK(rig.paths.may_send(NicId{3}) == Instant{});
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

TEST_CASE("a memory on another socket than the processor is what payloads cross to, and commands go by the processor") {
  NicSpec spec = TestStand::round_figures();
  spec.socket_latency = {90 * ns};
  Engine engine;
  CounterBank counters(engine);
  HostPaths paths(spec, counters);
  const MemoryPath far_memory = paths.place(NicId{0}, NodeId{0}, {.socket = 1, .nic_socket = 0, .processor_socket = 0});
  CHECK(far_memory.crossing == Duration{90 * ns});
  CHECK(far_memory.command == Duration{});
  const MemoryPath far_processor =
      paths.place(NicId{0}, NodeId{0}, {.socket = 0, .nic_socket = 0, .processor_socket = 1});
  CHECK(far_processor.crossing == Duration{});
  CHECK(far_processor.command == Duration{90 * ns});
  CHECK_FALSE(far_processor.plain);
  CHECK(paths.place(NicId{0}, NodeId{0}, {.socket = 1, .nic_socket = 1}).plain);
}

TEST_CASE(
    "payloads cross between sockets one after the other, each way by itself, and other nodes have their own link") {
  NicSpec spec = TestStand::round_figures();
  spec.link_rate = {25'000'000'000};
  spec.socket_rate = {50'000'000'000};  // 20 ps a byte
  Engine engine;
  CounterBank counters(engine);
  HostPaths paths(spec, counters);
  const MemoryPath far = paths.place(NicId{0}, NodeId{0}, {.socket = 1, .nic_socket = 0});
  const MemoryPath other = paths.place(NicId{9}, NodeId{1}, {.socket = 1, .nic_socket = 0});
  const Bytes payload{100'000};  // 2 us on the link between the sockets, 4 us on the NIC's
  const auto of = [&](std::uint32_t nic, std::uint32_t handle) {
    Transfer transfer{};
    transfer.source = NicId{nic};
    transfer.size = payload;
    transfer.handle = handle;
    return transfer;
  };
  CHECK(other.link_out != far.link_out);
  CHECK(far.link_in != far.link_out);
  CHECK(paths.place(NicId{1}, NodeId{0}, {.socket = 1, .nic_socket = 0}).link_out == far.link_out);
  CHECK(paths.wait_to_cross(far.link_out, of(0, 1)));  // the first, so somebody has to ask
  CHECK_FALSE(paths.wait_to_cross(far.link_out, of(0, 2)));
  CHECK_FALSE(paths.wait_to_cross(far.link_out, of(1, 3)));
  CHECK(paths.next_to_cross(far.link_out, Instant{0}).handle == 1);
  CHECK(paths.free_at(far.link_out) == Instant{2000 * ns});
  CHECK(paths.next_to_cross(far.link_out, Instant{2000 * ns}).handle == 3);  // the other NIC's turn
  CHECK(paths.next_to_cross(far.link_out, Instant{4000 * ns}).handle == 2);
  CHECK_FALSE(paths.has_waiting(far.link_out));
  CHECK(paths.free_at(other.link_out) == Instant{});
  for (const std::uint32_t handle : {7, 8, 9}) paths.sets_out(handle, Instant{0});
  CHECK(paths.crossing_lag(far, 7, payload, Instant{4000 * ns}) == Duration{});  // while it came in
  CHECK(paths.crossing_lag(far, 8, payload, Instant{4000 * ns}) == Duration{});  // until 4 us
  CHECK(paths.crossing_lag(far, 9, payload, Instant{4000 * ns}) == Duration{2000 * ns});
  paths.limit_crossing(NodeId{0}, Rate{25'000'000'000});
  CHECK(paths.wait_to_cross(far.link_out, of(0, 4)));
  paths.next_to_cross(far.link_out, Instant{8000 * ns});
  CHECK(paths.free_at(far.link_out) == Instant{12'000 * ns});
}

TEST_CASE("tiles of a GPU share its link, and a slow one is counted by GPUs") {
  NicSpec spec;
  spec.framing.payload_max = Bytes{2048};
  spec.gpu_link = Rate{50'000'000'000};
  spec.gpus = 4;
  spec.gpu_tiles = 2;
  spec.slow_gpus = {{3, 500'000'000}};  // the second GPU of the second node
  GpuLinks links(spec);
  const std::uint32_t first = links.join(NodeId{0}, 0, 1);
  CHECK(links.join(NodeId{0}, 0, 2) == first);
  CHECK(links.join(NodeId{0}, 0, 3) != first);
  const Instant whole = links.read(first, Bytes{2048}, Instant{});
  const Instant slow = links.read(links.join(NodeId{1}, 0, 4), Bytes{2048}, Instant{});
  CHECK(slow.ps == 2 * whole.ps);
  CHECK(links.read(links.join(NodeId{1}, 0, 2), Bytes{2048}, Instant{}) == whole);
}
