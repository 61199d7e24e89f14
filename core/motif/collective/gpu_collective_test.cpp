// Collectives of GPU buffers against closed forms, where nothing else is on the way.
#include "core/motif/collective/gpu_collective.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/motif/collective/gpu_places.hpp"
#include "testing/motif_stage.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t step_ps = 1'000'000, seen_ps = 50'000;
constexpr std::uint64_t rate = 10'000'000'000;  // of a link: 100 ps a byte

// Which of four GPUs are joined, and by how many links.
using Links = std::vector<std::vector<std::uint64_t>>;
const Links square{{0, 2, 0, 1}, {2, 0, 1, 0}, {0, 1, 0, 2}, {1, 0, 2, 0}};

// A processor that costs nothing, and where `links` are given four GPUs a node.
void change(JobCosts& costs, const Links& links) {
  costs.cpu = CpuCosts{};
  if (links.empty()) return;
  const std::size_t count = links.size();
  costs.gpus.count = static_cast<std::uint32_t>(count);
  costs.gpus.step = Duration{step_ps};
  costs.gpus.joined.assign(count * count, false);
  std::vector<std::vector<Rate>> rates(count + 1, std::vector<Rate>(count + 1, Rate{rate}));
  for (std::size_t one = 0; one < count; ++one) {
    for (std::size_t other = 0; other < count; ++other) {
      costs.gpus.joined[one * count + other] = links[one][other] > 0;
      rates[one + 1][other + 1] = Rate{rate * std::max<std::uint64_t>(links[one][other], 1)};
    }
  }
  costs.gpus.copies = GpuCopies({}, {}, rates);
}

Ran run(std::uint32_t nodes, std::uint32_t per_node, const CollectiveCall& call, GpuAlgorithm algorithm,
        const Links& links = {}, std::uint32_t nics = 1) {
  MotifStage stage(Way::endpoints, nodes, per_node, one_switch(12, nics),
                   [&](JobCosts& costs) { change(costs, links); });
  return run_on(stage, [&](Rank& me) { return run_on_gpus(me, world(me), call, algorithm); });
}

std::uint64_t bytes_of(const Ran& ran) {
  std::uint64_t sum = 0;
  for (const SentMessage& message : ran.sent) sum += message.size.count;
  return sum;
}

CollectiveCall sum_of(std::uint64_t bytes) {
  return {.what = Collective::allreduce, .size = Bytes{bytes}, .element = Bytes{4}};
}

// All NICs are on one switch: 10 ns a link, 350 ns a switch, 40 ps a byte, 64 bytes of header.
constexpr std::uint64_t hop_ps(std::uint64_t bytes) {
  return 100'000 + 200'000 + (bytes > 96 ? 400'000 : 0) + 370'000 + (bytes + 64) * 40 + 300'000 + seen_ps;
}

// That a message of more than 96 bytes is acknowledged, its source sees when its target has taken it.
constexpr std::uint64_t home_ps(std::uint64_t bytes) { return bytes > 96 ? 370'000 + 32 * 40 : 0; }

TEST_CASE("between nodes a ring takes a message's time for each of its steps") {
  for (const std::uint32_t nodes : {2U, 3U, 8U, 12U}) {
    for (const std::uint64_t part : {std::uint64_t{64}, std::uint64_t{1024}}) {
      const std::uint64_t steps = nodes - 1;
      CHECK(run(nodes, 1, sum_of(part * nodes), GpuAlgorithm::ring).end.ps == 2 * steps * hop_ps(part) + home_ps(part));
      const CollectiveCall gathered{.what = Collective::allgather, .size = Bytes{part}, .element = Bytes{4}};
      CHECK(run(nodes, 1, gathered, GpuAlgorithm::ring).end.ps == steps * hop_ps(part) + home_ps(part));
      const CollectiveCall scattered{
          .what = Collective::reduce_scatter_block, .size = Bytes{part}, .element = Bytes{4}};
      CHECK(run(nodes, 1, scattered, GpuAlgorithm::ring).end.ps == steps * hop_ps(part) + home_ps(part));
    }
  }
}

TEST_CASE("on a node two rings go around its links, one each way") {
  const Links even{{0, 1, 0, 1}, {1, 0, 1, 0}, {0, 1, 0, 1}, {1, 0, 1, 0}};
  for (const std::uint64_t bytes : {std::uint64_t{8'000}, std::uint64_t{8'000'000}}) {
    const Ran ran = run(1, 4, sum_of(bytes), GpuAlgorithm::ring, even);
    CHECK(ran.end.ps == 2 * 3 * (bytes / 2 / 4 * 100 + step_ps + seen_ps));
    for (const SentMessage& message : ran.sent) CHECK(even[message.source][message.target] > 0);
  }
  // With links 0-1 and 2-3 of twice the rate the others carry all parts one behind another, as before.
  const Ran ran = run(1, 4, sum_of(8'000'000), GpuAlgorithm::ring, square);
  CHECK(ran.end.ps == 2 * 3 * std::uint64_t{1'000'000} * 100 + step_ps + seen_ps);
}

// All give their parts to all others at once, each over a link of its own; twice.
TEST_CASE("on a node topo takes two steps") {
  const Links all(4, std::vector<std::uint64_t>(4, 1));
  CHECK(run(1, 4, sum_of(40'000), GpuAlgorithm::topo, all).end.ps == 2 * (10'000 * 100 + step_ps + seen_ps));
}

// Of four nodes the first tree is 0 over 2, and 2 over 1 and 3; the second its mirror image. Two hops up, two down. A
// node has three messages at most that leave at once, and so may the last of them wait for two others.
TEST_CASE("a small vector goes up two trees and down again, a message's time for each level") {
  const std::uint64_t half = 32;
  const Ran ran = run(4, 1, sum_of(2 * half), GpuAlgorithm::tree);
  CHECK(ran.end.ps >= 4 * hop_ps(half));
  CHECK(ran.end.ps <= 4 * (hop_ps(half) + 2 * (half + 64) * 40));
}

// Each link of a tree carries half of the vector up, and half of it down: with many pieces the time is that of a rate.
TEST_CASE("a long vector goes through both trees at the rate of a link") {
  const std::uint64_t bytes = 256 << 20;
  const Ran ran = run(8, 1, sum_of(bytes), GpuAlgorithm::tree);
  // A node that is inside of one tree and a leaf of the other receives half of it from two and the whole of it down.
  const std::uint64_t wire = bytes * 2 * 40;
  CHECK(ran.end.ps > wire);
  CHECK(ran.end.ps < wire / 4 * 5);
}

TEST_CASE("whatever the algorithm, an all-reduction sends the vector twice for each rank but one") {
  for (const std::uint32_t nodes : {1U, 2U, 3U, 5U, 8U}) {
    for (const std::uint32_t per_node : {1U, 4U}) {
      for (const GpuAlgorithm algorithm : {GpuAlgorithm::ring, GpuAlgorithm::tree, GpuAlgorithm::topo}) {
        if (nodes * per_node < 2) continue;
        CAPTURE(nodes);
        CAPTURE(per_node);
        const std::uint64_t bytes = 1'000'000;
        const Ran ran = run(nodes, per_node, sum_of(bytes), algorithm, square, 2);
        CHECK(bytes_of(ran) == 2 * (nodes * per_node - 1) * bytes);
        CHECK(run(nodes, per_node, sum_of(bytes), algorithm, square, 2).fingerprint == ran.fingerprint);
      }
    }
  }
}

TEST_CASE("rings come into a node and leave it by each of its NICs, and each NIC has its share") {
  const Ran ran = run(3, 4, sum_of(1'200'000), GpuAlgorithm::ring, square, 2);
  // Two shares, each of which goes around twice but for a step: 22 of 12 parts at each of three crossings.
  const std::uint64_t share = 22 * (1'200'000 / 2 / 12);
  std::map<std::uint32_t, std::uint64_t> out, in;  // of each NIC, which two places are at
  for (const SentMessage& message : ran.sent) {
    if (message.source / 4 == message.target / 4) {
      CHECK(square[message.source % 4][message.target % 4] > 0);
      continue;
    }
    CHECK(message.source % 4 / 2 == message.target % 4 / 2);
    out[message.source / 2] += message.size.count;
    in[message.target / 2] += message.size.count;
  }
  CHECK(out.size() == 6);
  CHECK(in.size() == 6);
  for (const auto& [nic, bytes] : out) CHECK(bytes == share);
  for (const auto& [nic, bytes] : in) CHECK(bytes == share);
}

// Of four places three NICs have two, one and one: those two exchange what comes in. With three places on two NICs both
// do. No place is both ends of a way.
TEST_CASE("NICs with one GPU each have an even share of what comes into a node") {
  for (const auto& [per_node, nics] : {std::pair{4U, 3U}, std::pair{4U, 4U}, std::pair{3U, 2U}, std::pair{12U, 8U}}) {
    CAPTURE(per_node);
    fabric::SampleMachine machine = one_switch(12, nics);
    machine.nodes = 2;
    MotifStage stage(Way::endpoints, 2, per_node, machine);
    const GpuPlaces places(stage.job(), Communicator(0, 1, 2 * per_node, 0));
    REQUIRE(places.channels() == nics);
    const Placement& where = stage.job().placement();
    std::set<std::uint32_t> out, in;
    for (std::uint32_t channel = 0; channel < nics; ++channel) {
      const std::uint32_t first = places.local(channel, 0), last = places.local(channel, per_node - 1);
      CHECK(first != last);
      CHECK(out.insert(where.nic_of(last).value).second);
      CHECK(in.insert(where.nic_of(first).value).second);
      for (std::uint32_t position = 0; position < 2 * per_node; ++position)
        CHECK(places.position(channel, places.at(channel, position)) == position);
    }
  }
}

// As on four MI250X.
const Links dies = [] {
  Links links(8, std::vector<std::uint64_t>(8));
  const std::uint64_t joined[][3] = {{0, 1, 4}, {2, 3, 4}, {4, 5, 4}, {6, 7, 4}, {0, 6, 2}, {2, 4, 2},
                                     {0, 2, 1}, {1, 3, 1}, {1, 5, 1}, {3, 7, 1}, {4, 6, 1}, {5, 7, 1}};
  for (const auto& [one, other, count] : joined) links[one][other] = links[other][one] = count;
  return links;
}();

// Each die gives each other a part, twice: whatever way they go, links between two sets of dies carry no more than they
// can.
TEST_CASE("no cut of a node carries more than its links do, whatever pairs send over it") {
  const std::uint64_t part = 1'000'000;
  const std::uint64_t taken = run(1, 8, sum_of(8 * part), GpuAlgorithm::topo, dies).end.ps;
  for (std::uint32_t set = 1; set < 255; ++set) {
    std::uint64_t links = 0;
    for (std::uint32_t one = 0; one < 8; ++one) {
      for (std::uint32_t other = 0; other < 8; ++other) {
        if ((set >> one & 1U) != 0 && (set >> other & 1U) == 0) links += dies[one][other];
      }
    }
    const auto in = static_cast<std::uint64_t>(std::popcount(set));
    CHECK(taken >= 2 * in * (8 - in) * part * 100 / links);
  }
}

TEST_CASE("two GPUs without a link of their own take both links of one between them, and the pair's time at least") {
  // From 0 to 1 at the rate of a link, over 2 or 3; over 3 each link takes half as long.
  Links links{{0, 0, 1, 2}, {0, 0, 1, 2}, {1, 1, 0, 0}, {2, 2, 0, 0}};
  MotifStage stage(Way::endpoints, 1, 4, one_switch(12), [&](JobCosts& costs) { change(costs, links); });
  const GpuCosts& gpus = stage.job().costs().gpus;
  PeerLinks carrying(gpus, stage.job().placement());
  const Bytes size{1'000};
  CHECK(carrying.carry(gpus, 0, 1, size, {}).ps == 100'000);  // over 3, as the pair
  CHECK(carrying.carry(gpus, 0, 1, size, {}).ps == 100'000);  // behind it, 50,000 each
  CHECK(carrying.carry(gpus, 0, 3, size, {}).ps == 150'000);  // behind both
  CHECK(carrying.carry(gpus, 0, 1, size, {}).ps == 100'000);  // over 2, where it is there first
  CHECK(carrying.carry(gpus, 2, 1, size, {}).ps == 200'000);
  CHECK(carrying.carry(gpus, 1, 0, size, {}).ps == 100'000);  // the other way nothing is
  // Nobody is between 0 and 1 of a chain of four that ends with them: the pair's time, and no link's.
  links = {{0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 0, 1}, {0, 1, 1, 0}};
  MotifStage chain(Way::endpoints, 1, 4, one_switch(12), [&](JobCosts& costs) { change(costs, links); });
  PeerLinks far(chain.job().costs().gpus, chain.job().placement());
  CHECK(far.carry(chain.job().costs().gpus, 0, 1, size, {}).ps == 100'000);
  CHECK(far.carry(chain.job().costs().gpus, 0, 2, size, {}).ps == 100'000);
}

TEST_CASE("messages between GPUs of a node cost no processor, those between nodes do") {
  const Links all(4, std::vector<std::uint64_t>(4, 1));
  for (const std::uint32_t nodes : {1U, 2U}) {
    std::vector<std::uint64_t> ends;
    for (const std::uint64_t cost : {0U, 1'000'000U}) {
      MotifStage stage(Way::endpoints, nodes, 4, one_switch(12), [&](JobCosts& costs) {
        change(costs, all);
        costs.cpu.send = costs.cpu.send_fetched = costs.cpu.receive = costs.cpu.received = Duration{cost};
        costs.cpu.sent = costs.cpu.completion = Duration{cost};
      });
      stage.job().run([&](Rank& me) { return run_on_gpus(me, world(me), sum_of(64'000), GpuAlgorithm::ring); });
      ends.push_back(stage.job().end().ps);
    }
    CHECK((ends[0] == ends[1]) == (nodes == 1));
  }
}

TEST_CASE("each node is inside of one of the two trees at most") {
  for (const std::uint32_t nodes : {2U, 3U, 5U, 8U, 11U, 12U}) {
    // One piece each way of each tree: who sends down in one is inside of it.
    const Ran ran = run(nodes, 1, sum_of(64), GpuAlgorithm::tree);
    CHECK(ran.sent.size() == 2 * 2 * (nodes - 1));
    std::vector<std::uint32_t> sent(nodes);
    for (const SentMessage& message : ran.sent) ++sent[message.source];
    // A leaf of both sends twice; one that is inside of one tree up to four times, with its child or children.
    for (const std::uint32_t count : sent) CHECK(count <= 4);
  }
}

TEST_CASE("RCCL's model of itself takes the tree for short vectors on many nodes, and the ring for long ones") {
  MotifStage stage(Way::endpoints, 12, 1, one_switch(12));
  const GpuPlaces places(stage.job(), Communicator(0, 1, 12, 0));
  CHECK(tree_is_tuned(places, Rate{25'000'000'000}, Bytes{1 << 20}));
  CHECK_FALSE(tree_is_tuned(places, Rate{25'000'000'000}, Bytes{std::uint64_t{1} << 32}));
}

}  // namespace
}  // namespace dryfly::motif
