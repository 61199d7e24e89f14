#include "core/motif/collective/collectives.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "core/motif/collective/collective.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/selection.hpp"
#include "core/spec/spec.hpp"
#include "testing/motif_stage.hpp"

namespace dryfly::motif {
namespace {

// Sends and their acknowledgements, without the CPU's part and without distance: all NICs on one switch, with links of
// 10 ns and a switch of 350 ns, 40 ps a byte and 64 bytes of header.
constexpr std::uint64_t way_ps = 370'000;
constexpr std::uint64_t frame_ps(std::uint64_t bytes) { return (bytes + 64) * 40; }
constexpr std::uint64_t send_ps = 20'000;
constexpr std::uint64_t receive_ps = 30'000;
constexpr std::uint64_t seen_ps = 300'000 + 50'000 + 5'000;  // ingress, completion, and seeing it

// From a call to the last byte at the target's CPU, and what the CPU has done by then.
constexpr std::uint64_t message_ps(std::uint64_t bytes) {
  return send_ps + 100'000 + 200'000 + (bytes > 96 ? 400'000 : 0) + way_ps + frame_ps(bytes) + seen_ps;
}
// A receive and a send, both under way at once. Up to 96 bytes nobody waits for the acknowledgement, of 32 bytes; that
// of a longer one leaves the target behind its ingress stage, and is home after the data of the partner, which set out
// at the same time, has been taken.
constexpr std::uint64_t round_ps(std::uint64_t bytes) {
  const std::uint64_t received = receive_ps + message_ps(bytes);
  return bytes <= 96 ? received : received - seen_ps + 300'000 + way_ps + 32 * 40 + 50'000 + 5'000;
}
// Combining goes at 10 GB/s.
constexpr std::uint64_t combine_ps(std::uint64_t bytes) { return bytes * 100; }

Ran run(std::uint32_t ranks, const Job::Program& program, std::uint32_t per_node = 1) {
  MotifStage stage(Way::endpoints, ranks / per_node, per_node, one_switch(40));
  return run_on(stage, program);
}

Ran run(std::uint32_t ranks, CollectiveCall call, const Algorithm& algorithm) {
  static const Selection selection = Selection::of_library("openmpi");
  const Choice how{.algorithm = &algorithm, .fan = algorithm.usual_fan};
  return run(ranks, [&](Rank& me) { return run_collective(me, world(me), call, how, selection); });
}

Ran run(std::uint32_t ranks, CollectiveCall call, const char* algorithm) {
  return run(ranks, call, algorithm_named(call.what, algorithm));
}

std::vector<std::uint64_t> received(const Ran& ran, std::uint32_t ranks) {
  std::vector<std::uint64_t> bytes(ranks);
  for (const SentMessage& message : ran.sent) bytes[message.target] += message.size.count;
  return bytes;
}

bool rooted(Collective what) {
  return what == Collective::bcast || what == Collective::reduce || what == Collective::gather ||
         what == Collective::scatter;
}

std::uint32_t log2_up(std::uint32_t ranks) { return static_cast<std::uint32_t>(std::bit_width(ranks - 1)); }

TEST_CASE("a round of an exchange takes a message's time, and of a long one its acknowledgement's") {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{1024}}) {
    const Ran ran = run(2, [&](Rank& me) -> Task { co_await exchange(me, 1 - me.id(), Bytes{bytes}, 1 - me.id(), 0); });
    CHECK(ran.end.ps == round_ps(bytes));
  }
}

TEST_CASE("a dissemination barrier takes a round for each doubling of the distance") {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 13U, 32U, 40U}) {
    CHECK(run(ranks, {.what = Collective::barrier}, "dissemination").end.ps == log2_up(ranks) * round_ps(0));
  }
}

TEST_CASE("recursive doubling takes a round and a reduction for each doubling") {
  for (const std::uint32_t ranks : {2U, 4U, 8U, 32U}) {
    const CollectiveCall call{.what = Collective::allreduce, .size = Bytes{8}, .element = Bytes{8}};
    CHECK(run(ranks, call, "recursive_doubling").end.ps == log2_up(ranks) * (round_ps(8) + combine_ps(8)));
  }
}

TEST_CASE("Rabenseifner's all-reduction halves what it sends, and doubles it again") {
  for (const char* algorithm : {"rabenseifner", "rabenseifner_halves"}) {
    for (const std::uint32_t ranks : {2U, 4U, 16U, 32U}) {
      const CollectiveCall call{.what = Collective::allreduce, .size = Bytes{16'384}, .element = Bytes{8}};
      std::uint64_t expected = 0;
      for (std::uint64_t part = 16'384 / 2; part >= 16'384 / ranks; part /= 2) {
        // Packets of 2 KiB, a header each.
        const std::uint64_t headers = part <= 2048 ? 0 : (part / 2048 - 1) * 64 * 40;
        expected += 2 * (round_ps(part) + headers) + combine_ps(part);
      }
      CHECK(run(ranks, call, algorithm).end.ps == expected);
    }
  }
}

TEST_CASE("rings take a round for each other rank") {
  for (const std::uint32_t ranks : {2U, 3U, 7U, 16U, 40U}) {
    const std::uint64_t rounds = ranks - 1;
    CHECK(run(ranks, {.what = Collective::allgather, .size = Bytes{64}}, "ring").end.ps == rounds * round_ps(64));
    const CollectiveCall scatter{.what = Collective::reduce_scatter, .size = Bytes{64}, .element = Bytes{8}};
    const std::uint64_t reducing = rounds * (round_ps(64) + combine_ps(64));
    CHECK(run(ranks, scatter, "ring").end.ps == reducing);
    CHECK(run(ranks, scatter, "pairwise").end.ps == reducing);
    const CollectiveCall both{.what = Collective::allreduce, .size = Bytes{64 * ranks}, .element = Bytes{8}};
    CHECK(run(ranks, both, "ring").end.ps == reducing + rounds * round_ps(64));
  }
}

TEST_CASE("Bruck's all-gather and all-to-all take a round for each doubling, of what has to go so far") {
  for (const std::uint32_t ranks : {2U, 5U, 8U, 12U}) {
    std::uint64_t gathering = 0;
    std::uint64_t exchanging = 0;
    for (std::uint32_t distance = 1; distance < ranks; distance *= 2) {
      gathering += round_ps(8 * std::min(distance, ranks - distance));
      std::uint64_t blocks = 0;
      for (std::uint32_t block = 1; block < ranks; ++block) blocks += (block & distance) != 0 ? 1 : 0;
      exchanging += round_ps(8 * blocks);
    }
    CHECK(run(ranks, {.what = Collective::allgather, .size = Bytes{8}}, "bruck").end.ps == gathering);
    CHECK(run(ranks, {.what = Collective::alltoall, .size = Bytes{8}}, "bruck").end.ps == exchanging);
  }
}

TEST_CASE("recursive doubling, neighbours and halves: the sums of their rounds") {
  const std::uint64_t doubling = round_ps(8) + round_ps(16) + round_ps(32);
  CHECK(run(8, {.what = Collective::allgather, .size = Bytes{8}}, "recursive_doubling").end.ps == doubling);
  CHECK(run(8, {.what = Collective::allgather, .size = Bytes{8}}, "neighbour").end.ps ==
        round_ps(8) + 3 * round_ps(16));
  const CollectiveCall halves{.what = Collective::reduce_scatter_block, .size = Bytes{8}, .element = Bytes{8}};
  const std::uint64_t combined = combine_ps(8 + 16 + 32);
  CHECK(run(8, halves, "recursive_halving").end.ps == doubling + combined);
  CHECK(run(8, halves, "butterfly").end.ps == doubling + combined);
  // All but one, two and four of eight blocks are swapped.
  CHECK(run(8, halves, "recursive_doubling").end.ps == round_ps(56) + round_ps(48) + round_ps(32) + combine_ps(136));
}

TEST_CASE("an exchange by exclusive or takes a round for each other rank") {
  const CollectiveCall call{.what = Collective::alltoall, .size = Bytes{1024}};
  CHECK(run(16, call, "exclusive").end.ps == 15 * round_ps(1024));
}

// A rank that only receives has posted its receive long before the message comes.
TEST_CASE("a chain takes a message for each link, and further segments follow closely") {
  const CollectiveCall call{.what = Collective::bcast, .size = Bytes{64}};
  CHECK(run(9, call, "chain").end.ps == 8 * message_ps(64));
  CHECK(run(9, call, "binary").end.ps < 8 * message_ps(64));
}

TEST_CASE("a binomial broadcast takes a message for each doubling: the last child of each rank is the farthest") {
  for (const std::uint32_t ranks : {2U, 8U, 32U}) {
    // The root's sends follow one another; the longest way is that along first children.
    const CollectiveCall call{.what = Collective::bcast, .size = Bytes{8}};
    CHECK(run(ranks, call, "binomial").end.ps == log2_up(ranks) * message_ps(8));
  }
}

TEST_CASE("each rank receives as much as its part of the result takes, whatever the number of ranks") {
  for (std::uint32_t ranks = 1; ranks <= 40; ++ranks) {
    for (const Algorithm& algorithm : algorithms()) {
      const std::string name(algorithm.name);
      // In the switches there are no messages, and 400 bytes are too many.
      if (name == "hierarchical" || name == "multi_nic" || name == "switches") continue;
      for (const std::uint32_t root : {0U, ranks - 1}) {
        if (root > 0 && !rooted(algorithm.what)) continue;
        const CollectiveCall call{.what = algorithm.what, .size = Bytes{400}, .element = Bytes{4}, .root = root};
        CAPTURE(ranks);
        CAPTURE(name);
        const Ran ran = run(ranks, call, algorithm);
        const std::vector<std::uint64_t> bytes = received(ran, ranks);
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          const bool forwards = name.find("scatter_") == 0 || name == "bruck" || name == "gather_bcast";
          const std::uint64_t others = 400 * (std::uint64_t{ranks} - 1);
          switch (algorithm.what) {
            case Collective::barrier:
              CHECK(bytes[rank] == 0);
              break;
            case Collective::bcast:
              if (forwards) CHECK(bytes[rank] >= (rank == root ? 0U : 400U));
              if (!forwards && rank != root) CHECK(bytes[rank] == 400);
              break;
            case Collective::allgather:
            case Collective::allgatherv:
              if (name != "gather_bcast") CHECK(bytes[rank] == others);
              break;
            case Collective::alltoall:
              CHECK((forwards ? bytes[rank] >= others : bytes[rank] == others));
              break;
            case Collective::gather:
              if (rank == root) CHECK(bytes[rank] == others);
              break;
            case Collective::scatter:
              if (rank != root) CHECK(bytes[rank] >= 400);
              break;
            default:  // reductions: the sum over ranks is what counts
              break;
          }
        }
        if (algorithm.what == Collective::reduce && ranks > 1) CHECK(ran.sent.size() >= ranks - 1);
        if (algorithm.what == Collective::allreduce && ranks > 1) {
          for (const std::uint64_t mine : bytes) CHECK(mine > 0);
        }
        CHECK(run(ranks, call, algorithm).fingerprint == ran.fingerprint);
      }
    }
  }
}

// On one switch the root is the parent of all. A part, and then a result, for each other rank takes a turn on its link.
TEST_CASE("in the switches an all-reduction goes to the root and back, through the root's CPU only") {
  constexpr std::uint64_t up_ps = 40'000 + 100'000 + 200'000 + way_ps + 50'000;
  constexpr std::uint64_t through_root_ps = 50'000 + 100'000 + 200'000;
  for (const std::uint32_t ranks : {2U, 3U, 8U, 40U}) {
    const std::uint64_t once = up_ps + through_root_ps + way_ps + 2 * (ranks - 1) * frame_ps(49) + seen_ps;
    for (const Collective what : {Collective::barrier, Collective::bcast, Collective::reduce, Collective::allreduce}) {
      const CollectiveCall call{.what = what, .size = Bytes{8}, .element = Bytes{8}, .root = ranks - 1};
      const Ran ran = run(ranks, call, "switches");
      CHECK(ran.end.ps == once);
      CHECK(ran.sent.empty());
      CHECK(run(ranks, call, "switches").fingerprint == ran.fingerprint);
    }
  }
}

TEST_CASE("one that comes late to a reduction in the switches delays all by as much, on every level") {
  for (const Way way : {Way::endpoints, Way::links, Way::network}) {
    const auto time_of = [&](std::uint64_t late_ps) {
      MotifStage stage(way);
      return stage
          .run([&](Rank& me) -> Task {
            for (std::uint32_t turn = 0; turn < 3; ++turn) {
              if (me.id() == 5) co_await me.compute(Duration{late_ps});
              co_await in_switches(me, world(me));
            }
          })
          .end()
          .ps;
    };
    // So late that it is the last of all to give its part.
    CHECK(time_of(9'000'000) - time_of(8'000'000) == 3 * 1'000'000);
    CHECK(time_of(0) < time_of(8'000'000));
  }
}

TEST_CASE("each communicator has a root of its own in the switches, and there are no more of them than ranks") {
  const auto reduce_with = [](std::uint32_t groups) {
    return run(3, [=](Rank& me) -> Task {
      for (std::uint32_t group = 0; group < groups; ++group) co_await in_switches(me, {0, 1, 3, group});
    });
  };
  CHECK(reduce_with(3).end > reduce_with(2).end);
  CHECK_THROWS_WITH_AS(reduce_with(4), doctest::Contains("is the root of another"), SpecError);
}

TEST_CASE("on two levels only leaders send between nodes, and each rank of a node takes part in it") {
  const Selection selection = Selection::of_library("mpich");
  for (const char* name : {"allreduce", "bcast", "reduce", "barrier"}) {
    const CollectiveCall call{.what = collective_named(name), .size = Bytes{64}, .element = Bytes{8}};
    const Ran ran = run(24, [&](Rank& me) { return run_collective(me, world(me), call, selection); }, 4);
    std::uint32_t between = 0;
    for (const SentMessage& message : ran.sent) {
      if (message.source / 4 == message.target / 4) continue;
      ++between;
      CHECK(message.source % 4 == 0);
      CHECK(message.target % 4 == 0);
    }
    CHECK(between > 0);
  }
}

TEST_CASE("over several NICs each of a node's chosen ranks sends its part") {
  const Selection selection = Selection::of_library("mpich");
  const CollectiveCall call{.what = Collective::allreduce, .size = Bytes{6400}, .element = Bytes{8}};
  const Choice how{.algorithm = &algorithm_named(Collective::allreduce, "multi_nic")};
  const Ran ran = run(8, [&](Rank& me) { return run_collective(me, world(me), call, how, selection); }, 4);
  std::uint64_t between = 0;
  for (const SentMessage& message : ran.sent) {
    if (message.source / 4 != message.target / 4) between += message.size.count;
  }
  // Two nodes: by halves, so that each gives the other half of the vector, twice.
  CHECK(between == 2 * 6400);
}

TEST_CASE("the first rule that fits decides, and rules of the user's come before the library's") {
  Selection selection = Selection::of_library("mpich");
  selection.put_before("allreduce ring ranks>=4 bytes>100  # a remark\n\nallreduce recursive_doubling ranks=4\n",
                       "mine.rules", "mine");
  const auto sends = [&](std::uint32_t ranks, std::uint64_t bytes) {
    const CollectiveCall call{.what = Collective::allreduce, .size = Bytes{bytes}, .element = Bytes{4}};
    return run(ranks, [&](Rank& me) { return run_collective(me, world(me), call, selection); }).sent.size();
  };
  CHECK(sends(5, 400) == 2 * 4 * 5);  // ring
  CHECK(sends(4, 100) == 2 * 4);      // recursive doubling
  CHECK(sends(8, 8) == 3 * 8);        // the library's
  // Each rule is told once, with the sizes and ranks that it was for.
  CHECK(sends(4, 80) == 2 * 4);
  CHECK(selection.chosen() ==
        std::vector<std::string>{"allreduce of 8 B on 8 ranks: recursive_doubling (mpich: bytes<=8)",
                                 "allreduce of 80 to 100 B on 4 ranks: recursive_doubling (mine: ranks=4)",
                                 "allreduce of 400 B on 5 ranks: ring (mine: ranks>=4 bytes>100)"});
}

TEST_CASE("a rule for the switches is passed over where the vector is too long for them") {
  Selection selection = Selection::of_library("mpich");
  selection.put_before("allreduce switches\nallreduce ring\n", "mine", "mine");
  const auto sends = [&](std::uint64_t bytes) {
    const CollectiveCall call{.what = Collective::allreduce, .size = Bytes{bytes}, .element = Bytes{4}};
    return run(4, [&](Rank& me) { return run_collective(me, world(me), call, selection); }).sent.size();
  };
  CHECK(sends(32) == 0);
  CHECK(sends(36) == 2 * 3 * 4);
}

TEST_CASE("what is no rule is refused with its line") {
  const auto said = [](const char* rules) -> std::string {
    Selection selection;
    try {
      selection.put_before(rules, "mine", "mine");
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(said("bcast binomial\nbcast hypercube\n").find("mine, line 2: algorithm `hypercube` of bcast: accepted is") ==
        0);
  CHECK(said("bcast binomial ranks<x").find("mine, line 1: `ranks<x`: accepted is a whole number") == 0);
  CHECK(said("bcast binomial colour=3").find("mine, line 1: `colour=3`: accepted is ranks, bytes") == 0);
  CHECK(said("bcast knomial fan=1") == "mine, line 1: fan = 1 of algorithm knomial: accepted is 2 and more");
  CHECK(said("scan linear").find("mine, line 1: collective `scan`: accepted is barrier") == 0);
  CHECK(said("bcast").find("mine, line 1: `bcast`: accepted is COLLECTIVE ALGORITHM") == 0);
}

}  // namespace
}  // namespace dryfly::motif
