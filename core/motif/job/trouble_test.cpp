// Faults on the levels latency and links: by hand where one link is concerned, else against the packet model.
#include "core/motif/job/trouble.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "testing/motif_stage.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t s = 1'000'000'000'000;
constexpr std::uint64_t epoch = 1'073'741'824'000;  // 2^30 ns, the time-out of a packet
// 25 GB/s, and headers of 64 B.
constexpr std::uint64_t frame_ps(std::uint64_t bytes) { return (bytes + 64) * 40; }

// Four groups of four switches with two NICs each, NIC 2k and 2k+1 at switch k. `faults`: kind, where, what else.
fabric::SampleMachine with(const std::vector<std::vector<std::string>>& faults, std::uint64_t nics = 1) {
  fabric::SampleMachine machine;
  machine.nics_per_node = nics;
  machine.more += fabric::fault_times(4) + "faults.seed 1\nfaults.count " + std::to_string(faults.size()) + "\n";
  for (std::size_t n = 0; n < faults.size(); ++n) {
    const std::string name = "faults." + std::to_string(n) + ".";
    machine.more += name + "kind " + faults[n][0] + "\n" + name + "where " + faults[n][1] + "\n";
    bool begins = false;
    for (std::size_t more = 2; more < faults[n].size(); ++more) {
      machine.more += name + faults[n][more] + "\n";
      begins = begins || faults[n][more].starts_with("from_ps");
    }
    if (!begins) machine.more += name + "from_ps 0\n";
  }
  return machine;
}

// When the message from rank 0 is there.
std::uint64_t received_ps(Way way, fabric::SampleMachine machine, std::uint32_t to, std::uint64_t bytes) {
  machine.routing = "minimal";
  MotifStage stage(way, 8, 1, machine);
  Instant end;
  stage.run([&](Rank& me) -> Task {
    if (me.id() == 0) co_await me.send(to, 7, Bytes{bytes});
    if (me.id() == to) {
      co_await me.recv(0, 7);
      end = me.now();
    }
  });
  return end.ps;
}

TEST_CASE("a NIC on two of its four lanes takes twice the time for each packet, in and out") {
  for (const Way way : {Way::endpoints, Way::links, Way::network}) {
    const fabric::SampleMachine slow = with({{"lanes", "n0", "lanes 2"}});
    CHECK(received_ps(way, slow, 1, 8) == received_ps(way, with({}), 1, 8) + frame_ps(8));
    // A request with a full packet, the Get of the target, nine packets of the rest.
    CHECK(received_ps(way, slow, 1, 20'480) ==
          received_ps(way, with({}), 1, 20'480) + 10 * frame_ps(2048) + frame_ps(0));
    // What comes to it is as slow.
    CHECK(received_ps(way, with({{"lanes", "n1", "lanes 2"}}), 1, 8) == received_ps(way, with({}), 1, 8) + frame_ps(8));
    // Of a payload in packets only the first waits twice, of a single one all.
    const fabric::SampleMachine both = with({{"lanes", "n0-s0", "lanes 2"}, {"lanes", "n1-s0", "lanes 2"}});
    CHECK(received_ps(way, both, 1, 4'096) == received_ps(way, with({}), 1, 4'096) + 3 * frame_ps(2048));
  }
}

TEST_CASE("a link between switches on three or two of its lanes takes 4/3 or twice the time") {
  for (const Way way : {Way::links, Way::network}) {
    const std::uint64_t usual_ps = received_ps(way, with({}), 2, 8);
    CHECK(received_ps(way, with({{"lanes", "s0>s1", "lanes 3"}}), 2, 8) == usual_ps + frame_ps(8) / 3);
    CHECK(received_ps(way, with({{"lanes", "s0>s1", "lanes 2"}}), 2, 8) == usual_ps + frame_ps(8));
    CHECK(received_ps(way, with({{"lanes", "s1>s0", "lanes 2"}}), 2, 8) == usual_ps);
    CHECK(received_ps(way, with({{"lanes", "s0>s1", "lanes 2", "from_ps 1000000000"}}), 2, 8) == usual_ps);
  }
}

std::string given_up(Way way, const std::vector<std::vector<std::string>>& faults) {
  try {
    received_ps(way, with(faults), 1, 8);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("what meets a flap is sent again after the time-out epoch, and again 4 s after the second") {
  for (const Way way : {Way::endpoints, Way::links, Way::network}) {
    const std::uint64_t usual_ps = received_ps(way, with({}), 1, 8);
    const auto flap = [](std::uint64_t until_ps) {
      return with({{"down", "n0", "until_ps " + std::to_string(until_ps)}});
    };
    CHECK(received_ps(way, flap(1 * s), 1, 8) == usual_ps + epoch);
    CHECK(received_ps(way, flap(2 * s), 1, 8) == usual_ps + 2 * epoch + 4 * s);
    CHECK(given_up(way, {{"lanes", "n2", "lanes 2"}, {"down", "n0"}})
              .starts_with("faults.1: the network has given up a message from NIC n0 to n1 at "));
  }
}

TEST_CASE("what follows a lost message is taken behind it") {
  for (const Way way : {Way::endpoints, Way::links, Way::network}) {
    MotifStage stage(way, 2, 1, with({{"down", "n0", "until_ps 10000000"}}));  // 10 us
    std::vector<Instant> ends(2);
    stage.run([&](Rank& me) -> Task {
      if (me.id() == 0) {
        me.isend(1, 0, Bytes{8});
        co_await me.compute(Duration{20'000'000});
        me.isend(1, 1, Bytes{8});
      } else {
        co_await me.recv(0, 1);
        ends[1] = me.now();
      }
      co_await me.wait_all();
    });
    CHECK(ends[1].ps > epoch);
    CHECK(ends[1].ps < epoch + 30'000'000);
  }
}

TEST_CASE("a cable that is not there is gone around, and one that goes down by its own switch at once") {
  for (const Way way : {Way::links, Way::network}) {
    const std::uint64_t usual_ps = received_ps(way, with({}), 2, 8);
    for (const char* kind : {"absent", "down"}) {
      // By a third switch of the group: one link and one switch more.
      CHECK(received_ps(way, with({{kind, "s0-s1"}}), 2, 8) == usual_ps + 10'000 + 350'000);
    }
  }
}

TEST_CASE("the level latency refuses what is wrong between switches, and every level a drain of the job's NICs") {
  CHECK_THROWS_WITH_AS(MotifStage(Way::endpoints, 2, 1, with({{"lanes", "s0-s1", "lanes 2"}})),
                       "faults.0.where = `s0-s1`: `lanes` of links between switches, of which the level latency has "
                       "none: accepted are those of NICs, or the levels links, packet and flow",
                       SpecError);
  const Spec spec = motif_spec(with({{"drain", "s0"}}));
  const Dragonfly topology(spec);
  CHECK_THROWS_WITH_AS(refuse_drained(spec, topology, Placement(topology, 2, 1)),
                       "faults.0: a `drain` takes out NIC n0 of the job, for which there is no other way: accepted are "
                       "drains of what no rank hangs on; to lose it nevertheless, write a loss or a flap",
                       SpecError);
  const Spec elsewhere = motif_spec(with({{"drain", "s3"}}));
  refuse_drained(elsewhere, topology, Placement(topology, 2, 1));
}

// All to all in steps, a message in flight for each rank.
Task pairwise(Rank& me, std::uint64_t bytes) {
  for (std::uint32_t step = 1; step < me.count(); ++step) {
    me.irecv((me.id() + me.count() - step) % me.count(), step);
    me.isend((me.id() + step) % me.count(), step, Bytes{bytes});
    co_await me.wait_all();
  }
}

// With eight partners at fixed distances, all at once, three times.
Task neighbours(Rank& me, std::uint64_t bytes) {
  for (std::uint32_t step = 0; step < 3; ++step) {
    for (const std::uint32_t far : {1U, 4U, 16U, 37U}) {
      for (const std::uint32_t shift : {far, me.count() - far}) {
        me.irecv((me.id() + me.count() - shift) % me.count(), step * 1024 + shift);
        me.isend((me.id() + shift) % me.count(), step * 1024 + shift, Bytes{bytes});
      }
    }
    co_await me.wait_all();
  }
}

// 32 nodes of four NICs, 128 ranks.
double time_ps(Way way, const std::vector<std::vector<std::string>>& faults, bool all, std::uint64_t bytes) {
  MotifStage stage(way, 32, 4, with(faults, 4));
  const Job& job = stage.run([&](Rank& me) { return all ? pairwise(me, bytes) : neighbours(me, bytes); });
  return static_cast<double>(job.end().ps);
}

TEST_CASE("128 ranks: with faults the level links is as far from the level packet as without") {
  const std::vector<std::vector<std::vector<std::string>>> planted{
      {{"lanes", "global", "lanes 2"}},
      {{"lanes", "n5", "lanes 1"}},
      {{"replays", "all", "rate_ppb 1000000"}},
      {{"absent", "s0-s1"}, {"absent", "s5-s6"}, {"absent", "s10-s11"}},
      {{"down", "n9", "from_ps 20000000", "until_ps 40000000"}},
  };
  for (const bool all : {true, false}) {
    const std::uint64_t bytes = all ? 4'096 : 65'536;
    const double usual = time_ps(Way::links, {}, all, bytes) / time_ps(Way::network, {}, all, bytes);
    for (const auto& faults : planted) {
      CAPTURE(all);
      CAPTURE(faults[0][0]);
      const double links = time_ps(Way::links, faults, all, bytes);
      const double packet = time_ps(Way::network, faults, all, bytes);
      CAPTURE(links / packet - usual);
      CHECK(std::abs(links / packet - usual) < 0.06);
      CHECK(links == time_ps(Way::links, faults, all, bytes));
    }
  }
}

}  // namespace
}  // namespace dryfly::motif
