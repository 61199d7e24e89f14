// Copies by the memory of a node, by where the cores are that make them.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "core/spec/nearness.hpp"
#include "testing/test_stand.hpp"

namespace dryfly::nic {
namespace {

const std::string near_lines =
    "node.near.0.latency_ps 100000\nnode.near.0.cached_bytes_per_s "
    "1000000000\nnode.near.0.memory_bytes_per_s 800000000\n"
    "node.near.1.latency_ps 300000\nnode.near.1.cached_bytes_per_s "
    "500000000\nnode.near.1.memory_bytes_per_s 800000000\n"
    "node.near.2.latency_ps 700000\nnode.near.2.cached_bytes_per_s "
    "250000000\nnode.near.2.memory_bytes_per_s 250000000\n"
    "node.near.regions 4\nnode.near.sockets 2\nnode.near.l2_bytes 0\nnode.near.l2_bytes_per_s "
    "2000000000\nnode.near.l3_bytes 20000\n";

// Two sockets of two L3 regions: 20 and 21 are in the first, 22 in the second, 23 on the other socket. In caches a core
// copies 1 GB/s in its region, half of it on its socket and a quarter across.
NicSpec near_and_far() {
  NicSpec spec = TestStand::round_figures();
  spec.memory.copy = {};
  spec.memory.near = Nearness::read(Spec::parse(near_lines));
  spec.memory.cached = spec.memory.near.cached(4);
  return spec;
}

void open_near_and_far(TestStand& stand, const NicSpec& spec) {
  const std::array<std::uint32_t, 4> regions{0, 0, 1, 2};
  for (std::uint32_t which = 0; which < regions.size(); ++which) {
    const CorePlace core = spec.memory.near.of_region(regions[which]);
    stand.nics.open_endpoint(EndpointId{20 + which}, NicId{1}, NodeId{1}, {.in_memory = true},
                             {.core_region = core.region, .core_socket = core.socket});
  }
}

}  // namespace

TEST_CASE("what a core has written a farther one sees later, and each copies the slower what the other has") {
  const std::array<const char*, 3> received{"2000 received 10 in 30 at 21", "4200 received 10 in 30 at 22",
                                            "8600 received 10 in 30 at 23"};
  const NicSpec spec = near_and_far();
  for (std::uint32_t distance = 0; distance < received.size(); ++distance) {
    TestStand stand{spec};
    open_near_and_far(stand, spec);
    stand.nics.receive(receive_of(21 + distance, 30));
    stand.nics.send(message(20, 21 + distance, 1000, 10));  // in and out, and what is farther than the least between
    stand.run();
    CHECK(stand.log.back() == received[distance]);
  }
}

TEST_CASE("what is too long for caches comes out of memory, and across sockets no sooner for that") {
  const std::array<const char*, 3> received{"25000 received", "25200 received", "80600 received"};
  const NicSpec spec = near_and_far();
  for (std::uint32_t distance = 0; distance < received.size(); ++distance) {
    TestStand stand{spec};
    open_near_and_far(stand, spec);
    stand.nics.receive(receive_of(21 + distance, 30));
    stand.nics.send(message(20, 21 + distance, 20'000, 10));  // the request is seen, then the target reads
    stand.run();
    CHECK(stand.log.front().starts_with(received[distance]));
  }
}

TEST_CASE("the kernel takes its time for each copy out of another process, and attaching it instead takes its own") {
  NicSpec spec = near_and_far();
  spec.memory.cross_copy = {500 * ns};
  const auto received = [&](SourceMemory memory) {
    TestStand stand{spec};
    open_near_and_far(stand, spec);
    stand.nics.receive(receive_of(21, 30));
    SendCommand send = message(20, 21, 5000, 10);
    send.memory = memory;
    stand.nics.send(send);
    stand.run();
    return stand.log.front();
  };
  CHECK(received({}) == "5500 received 10 in 30 at 21");
  CHECK(received(SourceMemory{{2000 * ns}, Kept::nowhere}) == "7000 received 10 in 30 at 21");
  CHECK(received(SourceMemory{{}, Kept::nowhere}) == "5000 received 10 in 30 at 21");  // by an earlier message
}

TEST_CASE("what the target still has in its caches from before it copies as fast as what a core of its region has") {
  const NicSpec spec = near_and_far();
  const auto received = [&](std::uint32_t target, std::uint32_t size, Kept kept) {
    TestStand stand{spec};
    open_near_and_far(stand, spec);
    stand.nics.receive(receive_of(target, 30));
    SendCommand send = message(20, target, size, 10);
    send.memory = SourceMemory{kept};
    stand.nics.send(send);
    stand.run();
    return stand.log.front().substr(0, stand.log.front().find(' '));
  };
  // Of another region it copies 0.5 GB/s instead of 1; that it sees the message 200 ns later is so in both.
  CHECK(received(22, 5000, Kept::nowhere) == "10200");
  CHECK(received(22, 5000, Kept::in_region) == "5200");
  CHECK(received(22, 5000, Kept::in_own) == "2700");
  CHECK(received(21, 5000, Kept::nowhere) == received(21, 5000, Kept::in_region));
  // Out of memory it is where the memory is that counts.
  CHECK(received(22, 20'000, Kept::nowhere) == received(22, 20'000, Kept::in_own));
}

TEST_CASE("cores of one socket that copy from the other share the link between the two, each way by itself") {
  NicSpec spec = near_and_far();
  spec.memory.socket_rate = {500'000'000};
  TestStand stand{spec};
  stand.round_instants = false;
  constexpr std::uint32_t pairs = 8;
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    for (std::uint32_t socket = 0; socket < 2; ++socket) {
      stand.nics.open_endpoint(EndpointId{20 + 2 * pair + socket}, NicId{1}, NodeId{1}, {.in_memory = true},
                               {.core_region = 2 * socket, .core_socket = socket});
    }
    for (Token token = 0; token < 20; ++token) {
      stand.nics.receive(receive_of(21 + 2 * pair, token));
      stand.nics.send(message(20 + 2 * pair, 21 + 2 * pair, 50'000, token));
    }
  }
  stand.run();
  const double rate = pairs * 20 * 50'000.0 / static_cast<double>(stand.engine.now().ps) * 1e12;
  CHECK(rate <= 0.5e9);
  CHECK(rate >= 0.45e9);
}

TEST_CASE("what leaves a region shares the way out of it, what comes there the way in") {
  NicSpec spec = TestStand::round_figures();
  spec.memory.copy = {};
  const std::string ways =
      "node.near.into_region_bytes_per_s 2000000000\nnode.near.out_of_region_bytes_per_s 1000000000\n";
  spec.memory.near = Nearness::read(Spec::parse(near_lines + ways));
  spec.memory.cached = spec.memory.near.cached(4);
  // Pairs of the first region and the second, each of which would copy 0.5 GB/s; or within one.
  const auto rate = [&](std::uint32_t pairs, std::uint32_t source_region, std::uint32_t target_region,
                        std::uint32_t size) {
    TestStand stand{spec};
    stand.round_instants = false;
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
      for (const std::uint32_t end : {0, 1}) {
        stand.nics.open_endpoint(EndpointId{20 + 2 * pair + end}, NicId{1}, NodeId{1}, {.in_memory = true},
                                 {.core_region = end == 0 ? source_region : target_region, .core_socket = 0});
      }
      for (std::uint32_t n = 0; n < 40; ++n) {
        stand.nics.receive(receive_of(21 + 2 * pair, 30 + n));
        stand.nics.send(message(20 + 2 * pair, 21 + 2 * pair, size, 10 + n));
      }
    }
    stand.run();
    return 40.0 * size * pairs / static_cast<double>(std::stoull(stand.log.back())) * 1e9;
  };
  CHECK(rate(1, 0, 1, 10'000) == doctest::Approx(0.5e9).epsilon(0.02));
  CHECK(rate(4, 0, 1, 10'000) == doctest::Approx(1e9).epsilon(0.02));
  CHECK(rate(4, 0, 0, 10'000) == doctest::Approx(4e9).epsilon(0.02));
  // By a segment each byte is copied twice, and goes from region to region once.
  CHECK(rate(4, 0, 1, 4'000) == doctest::Approx(1e9).epsilon(0.03));
}

TEST_CASE("out of caches it is the memories that are near or far, whatever the cores are") {
  const NicSpec spec = near_and_far();
  const auto received = [&](std::uint32_t source_socket, std::uint32_t target_socket) {
    TestStand stand{spec};
    stand.nics.open_endpoint(EndpointId{20}, NicId{1}, NodeId{1}, {.in_memory = true},
                             {.socket = source_socket, .domain = source_socket});
    stand.nics.open_endpoint(EndpointId{21}, NicId{1}, NodeId{1}, {.in_memory = true},
                             {.socket = target_socket, .domain = target_socket});
    stand.nics.receive(receive_of(21, 30));
    stand.nics.send(message(20, 21, 20'000, 10));
    stand.run();
    return stand.log.front();
  };
  CHECK(received(0, 0) == "25000 received 10 in 30 at 21");
  CHECK(received(1, 0) == "80000 received 10 in 30 at 21");
  CHECK(received(0, 1) == "80000 received 10 in 30 at 21");
}

TEST_CASE("those who are bound to a memory get together what that one carries, and from the others what is left") {
  NicSpec spec = near_and_far();
  spec.memory.rate = {10'000'000'000};
  spec.memory.link_rate = {25'000'000'000};
  spec.memory.domains = {{1'000'000'000}, {4'000'000'000}};
  TestStand stand{spec};
  stand.round_instants = false;
  constexpr std::uint32_t pairs = 8;
  for (std::uint32_t each = 0; each < 2 * pairs; ++each) {
    stand.nics.open_endpoint(EndpointId{20 + each}, NicId{1}, NodeId{1}, {.in_memory = true}, {.domain = 0});
  }
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    for (Token token = 0; token < 20; ++token) {
      stand.nics.receive(receive_of(21 + 2 * pair, token));
      stand.nics.send(message(20 + 2 * pair, 21 + 2 * pair, 50'000, token));
    }
  }
  stand.run();
  const double rate = 2 * pairs * 20 * 50'000.0 / static_cast<double>(stand.engine.now().ps) * 1e12;
  CHECK(rate <= 1e9);
  CHECK(rate >= 0.9e9);
}

TEST_CASE("what NICs read and write in the memory of a node is not there for copies") {
  NicSpec spec = near_and_far();
  spec.memory.rate = {3'000'000'000};
  spec.memory.link_rate = {1'000'000'000};
  constexpr double copies = 40;
  constexpr double payloads = 2 * copies;  // each way
  const auto rate = [&](bool nics_move) {
    TestStand stand{spec};
    stand.round_instants = false;
    stand.nics.open_endpoint(EndpointId{20}, NicId{1}, NodeId{1}, {.in_memory = true});
    stand.nics.open_endpoint(EndpointId{21}, NicId{1}, NodeId{1}, {.in_memory = true});
    stand.nics.open_endpoint(EndpointId{22}, NicId{1}, NodeId{1});
    for (Token token = 0; nics_move && static_cast<double>(token) < payloads; ++token) {
      for (const std::uint32_t from : {0, 22}) {
        stand.nics.receive(receive_of(22 - from, 100 + token));
        stand.nics.send(message(from, 22 - from, 50'000, 100 + token));
      }
    }
    for (Token token = 0; static_cast<double>(token) < copies; ++token) {
      stand.nics.receive(receive_of(21, token));
      stand.nics.send(message(20, 21, 50'000, token));
    }
    stand.run();
    std::uint64_t over_ns = 0;
    for (const std::string& line : stand.log) {
      if (line.find("received") != std::string::npos && line.ends_with("at 21")) over_ns = std::stoull(line);
    }
    const double by_nic = nics_move ? payloads * (50'000 + 50'000 - 2048) : 0;  // the head that it reads is in caches
    return (2 * copies * 50'000 + by_nic) / static_cast<double>(over_ns) * 1e9;
  };
  CHECK(rate(false) == doctest::Approx(1.6e9).epsilon(0.01));  // what its core copies
  CHECK(rate(true) == doctest::Approx(3e9).epsilon(0.01));     // what the memory carries
}

}  // namespace dryfly::nic
