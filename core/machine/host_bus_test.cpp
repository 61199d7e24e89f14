// The bus between NICs and memory, over the network at packet level, with all that a NIC does with payloads: a bus
// that is faster than the links takes nothing away, and of a slower one all that it has is used.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "core/network/packet/packet_network.hpp"
#include "core/nic/nic.hpp"
#include "testing/sample_machine.hpp"
#include "testing/test_stand.hpp"

namespace dryfly {
namespace {

constexpr std::uint64_t ns = 1000;
constexpr std::uint64_t GB = 1'000'000'000;
constexpr std::uint64_t link = 25 * GB;
constexpr std::uint32_t nics_per_node = 4;

enum class Kind : std::uint8_t { message, write, read };
enum class Way : std::uint8_t { into_node, out_of_node };

struct Traffic {
  Kind kind = Kind::message;
  Way way = Way::into_node;
  std::uint32_t nics = 1;    // of node 0
  std::uint32_t others = 1;  // nodes with one NIC at work each
  std::uint64_t size = 0;

  // As many for each pair.
  std::uint64_t count() const {
    const std::uint64_t pairs = nics * others;
    return ((16 << 20) / size / pairs + 1) * pairs;
  }
};

fabric::SampleMachine machine() {
  fabric::SampleMachine machine;
  machine.groups = 1;
  machine.nics_per_node = nics_per_node;
  machine.routing = "minimal";  // when an ordered flow leaves its way depends on instants, and the bus shifts these
  machine.rate_bytes_per_s = link;
  machine.management = "off";  // which holds sources back by estimates and has no say in what a bus can carry
  return machine;
}

// The second rate: of the link between the sockets, which all payloads of node 0 then cross.
NicSpec spec_with(std::uint64_t pcie_rate, std::uint64_t socket_rate) {
  NicSpec spec = nic::TestStand::round_figures();
  spec.pcie_rate = {pcie_rate};
  spec.socket_rate = {socket_rate};
  spec.link_rate = {link};
  return spec;
}

// Everything is asked for at the start; the end is when the last of it is in memory.
class Stand final : public Host {
 public:
  Stand(const Traffic& traffic, std::uint64_t pcie_rate, std::uint64_t socket_rate = 0)
      : spec_(machine().spec()),
        topology_(spec_),
        network_(engine_, topology_, spec_),
        nics_(engine_, network_, *this, spec_with(pcie_rate, socket_rate)) {
    for (std::uint32_t at = 0; at < traffic.nics; ++at) {
      nics_.open_endpoint(EndpointId{at}, NicId{at}, NodeId{0}, {}, {.socket = socket_rate != 0 ? 1U : 0U});
    }
    for (std::uint32_t other = 0; other < traffic.others; ++other) {
      nics_.open_endpoint(EndpointId{traffic.nics + other}, NicId{(1 + other) * nics_per_node}, NodeId{1 + other});
    }
    const std::uint64_t count = traffic.count();
    for (Token token = 0; token < count; ++token) {
      const EndpointId here{static_cast<std::uint32_t>(token % traffic.nics)};
      const EndpointId there{static_cast<std::uint32_t>(traffic.nics + token / traffic.nics % traffic.others)};
      const bool in = traffic.way == Way::into_node;
      ask(traffic.kind, in ? there : here, in ? here : there, Bytes{traffic.size}, token);
    }
    engine_.run(never);
    CHECK(done_ == count);
    CHECK(nics_.at_rest());
  }
  std::uint64_t took_ps() const { return last_.ps; }

  void received(const Received& /*message*/) override { note(); }
  void rma_done(EndpointId /*source*/, Token /*rma*/, int error) override {
    CHECK(error == 0);
    note();
  }
  int apply(EndpointId /*source*/, Token /*rma*/) override { return 0; }
  void sent(EndpointId /*source*/, Token /*send*/) override {}
  void rma_delivered(const RmaCommand& /*command*/, bool /*on_node*/, std::uint32_t /*switch_hops*/) override {}
  void send_failed(EndpointId, Token, int) override { DRYFLY_UNREACHABLE("nothing fails"); }
  void receive_failed(const Received&, int) override { DRYFLY_UNREACHABLE("nothing fails"); }
  void peeked(const Peeked&) override { DRYFLY_UNREACHABLE("nobody looks"); }
  void cancelled(EndpointId, Token) override { DRYFLY_UNREACHABLE("nobody cancels"); }
  void dropped(EndpointId, Token) override { DRYFLY_UNREACHABLE("nothing is dropped"); }
  void needs_processor(EndpointId, const Work&) override { DRYFLY_UNREACHABLE("the NIC does it all"); }

 private:
  void ask(Kind kind, EndpointId from, EndpointId to, Bytes size, Token token) {
    if (kind == Kind::message) {
      nics_.receive({.at = to, .tagged = true, .capacity = size, .token = token});
      nics_.send({.source = from, .target = to, .envelope = {.tagged = true}, .size = size, .token = token});
    } else if (kind == Kind::write) {
      nics_.rma({.kind = RmaKind::write,
                 .source = from,
                 .target = to,
                 .size = size,
                 .token = token,
                 .ordered = false,
                 .flush = true});
    } else {
      nics_.rma({.kind = RmaKind::read, .source = to, .target = from, .size = size, .token = token});
    }
  }
  void note() {
    ++done_;
    last_ = engine_.now();
  }

  Spec spec_;
  Engine engine_;
  Dragonfly topology_;
  PacketNetwork network_;
  Nics nics_;
  std::uint64_t done_ = 0;
  Instant last_;
};

void check(const Traffic& traffic) {
  const std::uint64_t without = Stand(traffic, 0).took_ps();
  // From below a link to far above what all of them carry.
  for (const std::uint64_t rate : std::array{7 * GB, 20 * GB, 26 * GB, 60 * GB, 90 * GB, 100 * GB, 500 * GB}) {
    const std::uint64_t on_bus = transmission_time(Bytes{traffic.count() * traffic.size}, Rate{rate}).ps;
    const std::uint64_t with = Stand(traffic, rate).took_ps();
    CAPTURE(static_cast<int>(traffic.kind));
    CAPTURE(static_cast<int>(traffic.way));
    CAPTURE(traffic.nics);
    CAPTURE(traffic.others);
    CAPTURE(traffic.size);
    CAPTURE(rate);
    CAPTURE(without);
    CAPTURE(on_bus);
    // NICs send a little ahead of what the bus has carried.
    const Bytes ahead{2048 * 2 * traffic.nics};
    CHECK(with + transmission_time(ahead, Rate{rate}).ps >= on_bus);
    if (rate >= link * traffic.nics) CHECK(with == without);
    const std::uint64_t first_byte = 4000 * ns;  // for a request, a Get and their flights
    CHECK(static_cast<double>(with) <= 1.02 * static_cast<double>(std::max(without, on_bus + first_byte)));
  }
}

void check_all(Kind kind, Way way) {
  for (const std::uint64_t size : {std::uint64_t{1} << 20, std::uint64_t{9000}}) {
    for (const std::uint32_t nics : {1U, 2U, 4U}) {
      for (const std::uint32_t others : {1U, 3U, 7U}) check({kind, way, nics, others, size});
    }
  }
}

}  // namespace

// With all that a NIC does with payloads. One that leaves is sent while it crosses, so the last of each NIC is on its
// way when the link has only begun with it. A link carries payloads whole: of several that come in at once it begins
// with each when all have nearly come, so it takes up to six tenths longer than it need.
TEST_CASE("payloads that cross between sockets never have a tenth more than that link's rate") {
  for (const Kind kind : {Kind::message, Kind::write, Kind::read}) {
    for (const Way way : {Way::into_node, Way::out_of_node}) {
      for (const std::uint64_t size : {std::uint64_t{1} << 18, std::uint64_t{9000}}) {
        for (const std::uint32_t nics : {1U, 4U}) {
          for (const std::uint64_t rate : {10 * GB, 20 * GB, 60 * GB}) {
            const Traffic traffic{kind, way, nics, 3, size};
            const std::uint64_t without = Stand(traffic, 0).took_ps();
            const std::uint64_t on_link = transmission_time(Bytes{traffic.count() * size}, Rate{rate}).ps;
            const std::uint64_t with = Stand(traffic, 0, rate).took_ps();
            CAPTURE(static_cast<int>(kind));
            CAPTURE(static_cast<int>(way));
            CAPTURE(nics);
            CAPTURE(size);
            CAPTURE(rate);
            CAPTURE(without);
            CHECK(static_cast<double>(with) >= static_cast<double>(on_link) / 1.1);
            CHECK(static_cast<double>(with) <= 1.6 * static_cast<double>(std::max(without, on_link + 8000 * ns)));
          }
        }
      }
    }
  }
}

TEST_CASE("messages into a node move at the rate of its links or of its bus, whichever is less") {
  check_all(Kind::message, Way::into_node);
}

TEST_CASE("messages out of a node move at the rate of its links or of its bus, whichever is less") {
  check_all(Kind::message, Way::out_of_node);
}

TEST_CASE("what is written to a node moves at the rate of its links or of its bus, whichever is less") {
  check_all(Kind::write, Way::into_node);
}

TEST_CASE("what a node writes moves at the rate of its links or of its bus, whichever is less") {
  check_all(Kind::write, Way::out_of_node);
}

TEST_CASE("what a node reads moves at the rate of its links or of its bus, whichever is less") {
  check_all(Kind::read, Way::into_node);
}

TEST_CASE("what is read from a node moves at the rate of its links or of its bus, whichever is less") {
  check_all(Kind::read, Way::out_of_node);
}

}  // namespace dryfly
