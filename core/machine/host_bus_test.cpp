// The bus between NICs and memory, over the network at packet level, with all that a NIC does with payloads: a bus
// that is faster than the links takes nothing away, and of a slower one all that it has is used.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "core/network/flow/flow_network.hpp"
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

// Of node 0. With a rate of the link between the sockets all its payloads cross that, with one of GPUs all are in the
// first GPU's memory, and NICs hang off the processor or off that GPU or another.
struct Limits {
  std::uint64_t pcie_rate = 0;
  std::uint64_t socket_rate = 0;
  std::uint64_t gpu_rate = 0;
  std::uint8_t nic_gpu = 0;
  bool flow = false;
};

NicSpec spec_with(const Limits& limits) {
  NicSpec spec = nic::TestStand::round_figures();
  if (limits.gpu_rate != 0) spec.framing.payload_max = Bytes{2048};
  spec.pcie_rate = {limits.pcie_rate};
  spec.socket_rate = {limits.socket_rate};
  spec.gpu_link = {limits.gpu_rate};
  const Rate pair{limits.gpu_rate / 2};
  spec.memory.gpus = GpuCopies({}, {}, {{{}, {}, {}}, {{}, {}, pair}, {{}, {}, {}}});
  spec.link_rate = {link};
  return spec;
}

std::unique_ptr<Network> network_of(bool flow, Engine& engine, const Dragonfly& topology, const Spec& spec) {
  if (flow) return std::make_unique<FlowNetwork>(engine, topology, spec);
  return std::make_unique<PacketNetwork>(engine, topology, spec);
}

// Everything is asked for at the start; the end is when the last of it is in memory.
class Stand final : public Host {
 public:
  Stand(const Traffic& traffic, const Limits& limits)
      : traffic_(traffic),
        limits_(limits),
        spec_(machine().spec()),
        topology_(spec_),
        network_(network_of(limits.flow, engine_, topology_, spec_)),
        nics_(engine_, *network_, *this, spec_with(limits)) {
    for (std::uint32_t at = 0; at < traffic.nics; ++at) {
      nics_.open_endpoint(EndpointId{at}, NicId{at}, NodeId{0}, {},
                          {.socket = limits.socket_rate != 0 ? 1U : 0U, .nic_gpu = limits.nic_gpu});
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
    CHECK(network_->totals().payload_bytes == count * traffic.size);
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
    const auto of = [&](bool here) { return static_cast<std::uint8_t>(here && limits_.gpu_rate != 0 ? 1 : 0); };
    const std::uint8_t from_gpu = of(traffic_.way == Way::out_of_node);
    const std::uint8_t to_gpu = of(traffic_.way == Way::into_node);
    if (kind == Kind::message) {
      nics_.receive({.at = to, .tagged = true, .capacity = size, .token = token, .gpu = to_gpu});
      nics_.send(
          {.source = from, .target = to, .envelope = {.tagged = true}, .size = size, .token = token, .gpu = from_gpu});
    } else if (kind == Kind::write) {
      nics_.rma({.kind = RmaKind::write,
                 .source = from,
                 .target = to,
                 .size = size,
                 .token = token,
                 .ordered = false,
                 .flush = true,
                 .gpu = from_gpu,
                 .target_gpu = to_gpu});
    } else {
      nics_.rma({.kind = RmaKind::read,
                 .source = to,
                 .target = from,
                 .size = size,
                 .token = token,
                 .gpu = to_gpu,
                 .target_gpu = from_gpu});
    }
  }
  // What is done by now the link has carried by now, but for what NICs fetch ahead: two packets each, and pieces.
  void note() {
    ++done_;
    last_ = engine_.now();
    if (limits_.gpu_rate == 0 || limits_.nic_gpu != 0) return;
    const Rate rate{limits_.gpu_rate};
    const Bytes ahead{std::uint64_t{2048} * (limits_.flow ? 16 : 2) * traffic_.nics};
    const Duration least = transmission_time(Bytes{done_ * traffic_.size}, rate);
    CHECK(last_.ps + transmission_time(ahead, rate).ps >= least.ps);
  }

  Traffic traffic_;
  Limits limits_;
  Spec spec_;
  Engine engine_;
  Dragonfly topology_;
  std::unique_ptr<Network> network_;
  Nics nics_;
  std::uint64_t done_ = 0;
  Instant last_;
};

void check(const Traffic& traffic) {
  const std::uint64_t without = Stand(traffic, {}).took_ps();
  // From below a link to far above what all of them carry.
  for (const std::uint64_t rate : std::array{7 * GB, 20 * GB, 26 * GB, 60 * GB, 90 * GB, 100 * GB, 500 * GB}) {
    const std::uint64_t on_bus = transmission_time(Bytes{traffic.count() * traffic.size}, Rate{rate}).ps;
    const std::uint64_t with = Stand(traffic, {.pcie_rate = rate}).took_ps();
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
            const std::uint64_t without = Stand(traffic, {}).took_ps();
            const std::uint64_t on_link = transmission_time(Bytes{traffic.count() * size}, Rate{rate}).ps;
            const std::uint64_t with = Stand(traffic, {.socket_rate = rate}).took_ps();
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

// In both networks, with all that a NIC does with payloads, long and short. In the one of flows streams that take turns
// at a link are a little ahead of each other or behind, whatever it carries.
TEST_CASE(
    "what NICs read of one GPU, or write to it, they do at its link's rate, together, and a faster link is none") {
  for (const bool flow : {false, true}) {
    for (const Kind kind : {Kind::message, Kind::write, Kind::read}) {
      for (const Way way : {Way::into_node, Way::out_of_node}) {
        for (const std::uint64_t size : {std::uint64_t{1} << 20, std::uint64_t{9000}}) {
          for (const std::uint32_t nics : {1U, 2U, 4U}) {
            const Traffic traffic{kind, way, nics, 3, size};
            const std::uint64_t without = Stand(traffic, {.flow = flow}).took_ps();
            for (const std::uint64_t rate : std::array{7 * GB, 31 * GB, 60 * GB, 100 * GB, 500 * GB}) {
              const std::uint64_t on_link = transmission_time(Bytes{traffic.count() * size}, Rate{rate}).ps;
              const std::uint64_t with = Stand(traffic, {.gpu_rate = rate, .flow = flow}).took_ps();
              CAPTURE(flow);
              CAPTURE(static_cast<int>(kind));
              CAPTURE(static_cast<int>(way));
              CAPTURE(nics);
              CAPTURE(size);
              CAPTURE(rate);
              CAPTURE(without);
              CAPTURE(on_link);
              if (rate >= link * nics && !flow) CHECK(with == without);
              const auto limit = static_cast<double>(std::max(without, on_link + 4000 * ns));
              const double in_turns = !flow ? 1.06 : rate >= link * nics ? 1.01 : 1.1;
              CHECK(static_cast<double>(with) <= in_turns * limit);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a NIC that hangs off a GPU has of it what it wants, and of another what the links of the two carry") {
  for (const Way way : {Way::into_node, Way::out_of_node}) {
    const Traffic traffic{Kind::message, way, 1, 3, 1 << 20};
    const std::uint64_t without = Stand(traffic, {}).took_ps();
    CHECK(Stand(traffic, {.gpu_rate = 10 * GB, .nic_gpu = 1}).took_ps() == without);
    const double by_pair = static_cast<double>(Stand(traffic, {.gpu_rate = 10 * GB, .nic_gpu = 2}).took_ps());
    const auto on_pair = static_cast<double>(transmission_time(Bytes{traffic.count() << 20}, Rate{5 * GB}).ps);
    CHECK(by_pair == doctest::Approx(on_pair).epsilon(0.01));
  }
}

// n NICs of 25 GB/s, of which packets of 2,048 B leave as frames of so many bytes, on a GPU that has 31.5 GB/s.
TEST_CASE("one, two and four NICs on a GPU have their links' rate, or that of the GPU's") {
  for (const Way way : {Way::into_node, Way::out_of_node}) {
    for (const std::uint32_t nics : {1U, 2U, 4U}) {
      const Traffic traffic{Kind::message, way, nics, 4, 1 << 20};
      const double bytes = static_cast<double>(traffic.count() << 20);
      const double of_links = 25e9 * nics * 2048 / static_cast<double>(2048 + machine().header_bytes);
      const double expected_ps = bytes / std::min(of_links, 31.5e9) * 1e12;
      const auto took_ps = static_cast<double>(Stand(traffic, {.gpu_rate = 31'500'000'000}).took_ps());
      CAPTURE(nics);
      CHECK(took_ps == doctest::Approx(expected_ps).epsilon(0.03));
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
