#include "core/motif/job/job.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "testing/motif_stage.hpp"

namespace dryfly::motif {
namespace {

// Nodes 0 and 1 are on one switch: two links of 10 ns and a switch of 350 ns, and b bytes with their header of 64 take
// 40 ps a byte.
constexpr std::uint64_t way_ps = 370'000;
constexpr std::uint64_t frame_ps(std::uint64_t bytes) { return (bytes + 64) * 40; }
constexpr std::uint64_t ack_ps = 32 * 40;
constexpr std::vector<Way> all_ways() { return {Way::endpoints, Way::links, Way::network}; }

// From the call to the first byte at the link; pushed by the CPU, or fetched.
constexpr std::uint64_t pushed_ps = 100'000 + 200'000;
constexpr std::uint64_t fetched_ps = pushed_ps + 400'000;
constexpr std::uint64_t seen_ps = 300'000 + 50'000;  // from the last byte at the NIC to the CPU

Task ping(Rank& me, std::uint64_t bytes, std::vector<Instant>& ends) {
  if (me.id() == 0) co_await me.send(1, 7, Bytes{bytes});
  if (me.id() == 1) co_await me.recv(0, 7);
  ends[me.id()] = me.now();
}

TEST_CASE("a short message takes what is written: call, command, egress, way, ingress, completion") {
  for (const Way way : all_ways()) {
    MotifStage stage(way, 2);
    std::vector<Instant> ends(2);
    stage.run([&](Rank& me) { return ping(me, 8, ends); });
    CHECK(ends[1].ps == 20'000 + pushed_ps + way_ps + frame_ps(8) + seen_ps + 5'000);
    CHECK(ends[0].ps == 20'000);  // an injected send is over with its call
  }
}

TEST_CASE("a longer one is fetched by the NIC") {
  for (const Way way : all_ways()) {
    MotifStage stage(way, 2);
    std::vector<Instant> ends(2);
    stage.run([&](Rank& me) { return ping(me, 1024, ends); });
    const std::uint64_t arrived_ps = 20'000 + fetched_ps + way_ps + frame_ps(1024);
    CHECK(ends[1].ps == arrived_ps + seen_ps + 5'000);
    // It is acknowledged behind the ingress stage; the last 5 ns are the CPU's.
    CHECK(ends[0].ps == arrived_ps + 300'000 + way_ps + ack_ps + 50'000 + 5'000);
  }
}

TEST_CASE("beyond the eager size the target's NIC gets the rest when it has matched the request") {
  for (const Way way : all_ways()) {
    MotifStage stage(way, 2);
    std::vector<Instant> ends(2);
    stage.run([&](Rank& me) { return ping(me, 20'480, ends); });
    // The request with 2,048 bytes, matched behind the ingress stage; the Get, a packet without payload; the source
    // fetches 18,432 bytes, nine packets.
    const std::uint64_t matched_ps = 20'000 + fetched_ps + way_ps + frame_ps(2048) + 300'000;
    const std::uint64_t asked_ps = matched_ps + 200'000 + way_ps + frame_ps(0);
    CHECK(ends[1].ps == asked_ps + 400'000 + way_ps + 9 * frame_ps(2048) + seen_ps + 5'000);
  }
}

TEST_CASE("a message that nobody waits for yet is taken when its receive is posted") {
  MotifStage stage(Way::endpoints, 2);
  std::vector<Instant> ends(2);
  stage.run([&](Rank& me) -> Task {
    if (me.id() == 1) co_await me.compute(Duration{50'000'000});
    co_await ping(me, 8, ends);
  });
  // Posted 30 ns after the computing; the command is at the NIC 100 ns later, which then does for the message what an
  // expected one needs on arrival.
  CHECK(ends[1].ps == 50'000'000 + 30'000 + 100'000 + 300'000 + 50'000 + 5'000);
}

Task access(Rank& me, bool write, std::uint64_t bytes, Instant& end) {
  if (me.id() != 0) co_return;
  if (write) {
    co_await me.wait(me.put(1, Bytes{bytes}));
  } else {
    co_await me.wait(me.get(1, Bytes{bytes}));
  }
  end = me.now();
}

TEST_CASE("a put is complete with its acknowledgement, a get with its data") {
  for (const Way way : all_ways()) {
    Instant end;
    MotifStage puts(way, 2);
    puts.run([&](Rank& me) { return access(me, true, 8, end); });
    CHECK(end.ps == 40'000 + pushed_ps + way_ps + frame_ps(8) + 300'000 + way_ps + ack_ps + 50'000 + 5'000);
    MotifStage gets(way, 2);
    gets.run([&](Rank& me) { return access(me, false, 8, end); });
    CHECK(end.ps ==
          40'000 + pushed_ps + way_ps + frame_ps(0) + 300'000 + 400'000 + way_ps + frame_ps(8) + seen_ps + 5'000);
  }
}

TEST_CASE("what a counter tells of costs the CPU nothing to see") {
  for (const Way way : all_ways()) {
    Instant put_end;
    MotifStage puts(way, 2);
    puts.run([&](Rank& me) -> Task {
      if (me.id() != 0) co_return;
      me.put(1, Bytes{8}, Told::by_counter);
      co_await me.wait_all();
      put_end = me.now();
    });
    CHECK(put_end.ps == 40'000 + pushed_ps + way_ps + frame_ps(8) + 300'000 + way_ps + ack_ps + 50'000);
    Instant get_end;
    MotifStage gets(way, 2);
    gets.run([&](Rank& me) -> Task {
      if (me.id() != 0) co_return;
      me.get(1, Bytes{8}, Told::by_counter);
      co_await me.wait_all();
      get_end = me.now();
    });
    CHECK(get_end.ps == 40'000 + pushed_ps + way_ps + frame_ps(0) + 300'000 + 400'000 + way_ps + frame_ps(8) + seen_ps);
  }
}

TEST_CASE("ranks of a node copy: bytes at the rate of a core, and the latency between cores") {
  MotifStage stage(Way::links, 1, 2);
  std::vector<Instant> ends(2);
  stage.run([&](Rank& me) { return ping(me, 1'000, ends); });
  CHECK(ends[1].ps == 20'000 + 100'000 + 70'000 + 50'000 + 5'000);
}

TEST_CASE("one link carries no more than its rate: 64 messages of 16 KiB to one NIC") {
  for (const Way way : all_ways()) {
    MotifStage stage(way, 5);
    Job& job = stage.run([&](Rank& me) -> Task {
      for (std::uint32_t turn = 0; turn < 16; ++turn) {
        if (me.id() != 0) me.isend(0, turn, Bytes{16'384});
        if (me.id() == 0) {
          for (std::uint32_t source = 1; source < 5; ++source) me.irecv(source, turn);
        }
      }
      co_await me.wait_all();
    });
    const std::uint64_t least_ps = 64 * 8 * frame_ps(2048);
    CHECK(job.end().ps > least_ps);
    CHECK(job.end().ps < least_ps + 5'000'000);
    CHECK(job.totals().messages == 64);
    CHECK(job.totals().bytes == 64 * 16'384);
  }
}

TEST_CASE("a core with detours computes and wakes later") {
  // Of each millisecond the first 100 us, on each core, at a phase that the seed decides: 10 ms of work meet ten or
  // eleven of them.
  fabric::SampleMachine machine;
  machine.more +=
      "noise.sources 1\nnoise.start_skew_ps 0\nnoise.cores 4\nnoise.0.on each core\nnoise.0.instants regular\n"
      "noise.0.period_ps 1000000000\nnoise.0.least_ps 100000000\nnoise.0.most_ps 100000000\n"
      "noise.0.chance_ppb 1000000000\n";
  MotifStage stage(Way::endpoints, 2, 1, machine);
  stage.run([](Rank& me) -> Task { co_await me.compute(Duration{10'000'000'000}); });
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    CHECK(stage.job().rank(rank).now().ps >= 11'000'000'000);
    CHECK(stage.job().rank(rank).now().ps <= 11'300'000'000);
  }
}

// Two links and a half for four NICs.
fabric::SampleMachine with_bus() {
  fabric::SampleMachine machine;
  machine.nics_per_node = 4;
  machine.more += "node.nics 4\nnode.pcie_rate_bytes_per_s 62500000000\n";
  for (std::uint64_t nic = 0; nic < 4; ++nic) machine.more += "node.nic." + std::to_string(nic) + ".socket 0\n";
  return machine;
}

TEST_CASE("NICs of a socket share its PCIe: four streams at the rate of two links and a half") {
  for (const Way way : all_ways()) {
    MotifStage stage(way, 2, 4, with_bus());
    Job& job = stage.run([&](Rank& me) -> Task {
      if (me.id() < 4) me.isend(me.id() + 4, 0, Bytes{10'000'000});
      if (me.id() >= 4) me.irecv(me.id() - 4, 0);
      co_await me.wait_all();
    });
    // 40 MB at 62.5 GB/s.
    CHECK(job.end().ps > 640'000'000);
    CHECK(job.end().ps < 650'000'000);
  }
}

// The same with 8 bytes on their way when the bus has been full for 100 us: they wait for one packet of each stream.
TEST_CASE("a single packet passes the long loads of its socket's PCIe") {
  for (const Way way : all_ways()) {
    std::uint64_t took_ps[2]{};
    for (const bool loaded : {false, true}) {
      MotifStage stage(way, 2, 4, with_bus());
      stage.run([&](Rank& me) -> Task {
        if (loaded && me.id() < 4) me.isend(me.id() + 4, 0, Bytes{10'000'000});
        if (loaded && me.id() >= 4) me.irecv(me.id() - 4, 0);
        co_await me.compute(Duration{100'000'000});
        if (me.id() == 3) me.isend(7, 1, Bytes{8});
        if (me.id() == 7) {
          const Instant begun = me.now();
          co_await me.recv(3, 1);
          took_ps[loaded ? 1 : 0] = (me.now() - begun).ps;
        }
        co_await me.wait_all();
      });
    }
    CHECK(took_ps[1] > took_ps[0]);
    CHECK(took_ps[1] < took_ps[0] + 500'000);
  }
}

TEST_CASE("requests of many long messages pass the payloads that lie in their NICs") {
  MotifStage stage(Way::endpoints, 8, 4, with_bus());
  Job& job = stage.run([&](Rank& me) -> Task {
    for (std::uint32_t other = 0; other < me.count(); ++other) {
      if (other / 4 != me.id() / 4) me.irecv(other, 0);
    }
    for (std::uint32_t step = 1; step < me.count(); ++step) {
      const std::uint32_t other = (me.id() + step) % me.count();
      if (other / 4 != me.id() / 4) me.isend(other, 0, Bytes{65'536});
    }
    co_await me.wait_all();
  });
  // 4 * 28 payloads leave each node. Behind payloads the requests come so late that it takes more than twice as long.
  const std::uint64_t least_ps = 4 * 28 * std::uint64_t{65'536} * 16;
  CHECK(job.end().ps > least_ps);
  CHECK(job.end().ps < least_ps * 3 / 2);
}

TEST_CASE("nor does the link of a NIC whose rank is far ahead: 60 receives posted, then 60 messages to all others") {
  for (const Way way : all_ways()) {
    MotifStage stage(way, 8, 4);
    Job& job = stage.run([&](Rank& me) -> Task {
      for (std::uint32_t turn = 0; turn < 60; ++turn) {
        if (me.id() < 4) me.irecv(me.id() + 4, 1);
      }
      for (std::uint32_t turn = 0; turn < 60; ++turn) {
        if (me.id() < 4) me.isend(4 + (me.id() * 60 + turn) % 28, 0, Bytes{16'384});
      }
      if (me.id() >= 4) {
        for (std::uint32_t message = 0; message < 240; ++message) {
          if (4 + message % 28 == me.id()) me.irecv(message / 60, 0);
        }
      }
      for (std::uint32_t turn = 0; turn < 60; ++turn) {
        if (me.id() >= 4 && me.id() < 8) me.isend(me.id() - 4, 1, Bytes{8});
      }
      co_await me.wait_all();
    });
    const std::uint64_t least_ps = 240 * 8 * frame_ps(2048);  // the four are on one NIC
    CHECK(job.end().ps > least_ps);
    CHECK(job.end().ps < least_ps + 20'000'000);
  }
}

TEST_CASE("virtual time ends before instants do") {
  MotifStage stage(Way::endpoints, 2);
  CHECK_THROWS_AS(stage.run([](Rank& me) -> Task {
    for (int day = 0; day < 300; ++day) co_await me.compute(Duration{86'400'000'000'000'000});
  }),
                  SpecError);
}

// Each rank to random others, of random sizes, in rounds; who gets what all know.
Task storm(Rank& me, std::uint64_t seed, std::uint32_t rounds) {
  const std::uint32_t count = me.count();
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const std::uint32_t shift = 1 + static_cast<std::uint32_t>(mix(seed + round) % (count - 1));
    const Bytes size{mix(seed ^ (round * 977)) % 100'000};
    me.irecv((me.id() + count - shift) % count, round);
    me.isend((me.id() + shift) % count, round, size);
    if (round % 4 == 3) co_await me.wait_all();
  }
  co_await me.wait_all();
}

TEST_CASE("every message is received, and a run repeats to the picosecond") {
  for (const Way way : all_ways()) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      MotifStage first(way, 16, 3);
      MotifStage second(way, 16, 3);
      const auto program = [&](Rank& me) { return storm(me, seed, 40); };
      CHECK(first.run(program).fingerprint() == second.run(program).fingerprint());
      CHECK(first.job().totals().messages == 48 * 40);
    }
  }
}

// Eight messages to all sides in each round: 8 bytes, or now and then one that is acknowledged or a rendezvous.
Task mixture(Rank& me, std::uint64_t seed, bool is_all_short) {
  const std::uint32_t count = me.count();
  for (std::uint64_t round = 0; round < 150; ++round) {
    for (std::uint32_t each = 0; each < 8; ++each) {
      const std::uint64_t draw = mix(seed * 100'000 + round * 8 + each);
      const std::uint32_t shift = 1 + static_cast<std::uint32_t>(draw % (count - 1));
      const bool is_long = !is_all_short && round % 50 == 40 && each % 4 == 1;
      me.irecv((me.id() + count - shift) % count, each);
      me.isend((me.id() + shift) % count, each, Bytes{!is_long ? 8U : each == 1 ? 1'000U : 30'000U});
    }
    co_await me.wait_all();
    // For a while nothing at all is under way.
    if (round == 75) co_await me.compute(Duration{50'000'000 + mix(me.id()) % 50'000'000});
  }
}

TEST_CASE("a second core changes nothing but time") {
  for (const fabric::SampleMachine& machine : {fabric::SampleMachine{}, with_bus()}) {
    for (const Way way : {Way::endpoints, Way::links}) {
      for (const bool is_all_short : {false, true}) {
        const auto program = [&](Rank& me) { return mixture(me, 7, is_all_short); };
        MotifStage one(way, 32, 4, machine, {}, 1);
        MotifStage two(way, 32, 4, machine, {}, 2);
        CHECK(two.run(program).fingerprint() == one.run(program).fingerprint());
        CHECK(two.job().end() == one.job().end());
        const JobTotals alone = one.job().totals();
        const JobTotals shared = two.job().totals();
        CHECK(shared.events == alone.events);
        CHECK(shared.records_max == alone.records_max);
        CHECK(alone.aside == 0);
        // Of 128 ranks' 1,200 messages those of a node go another way.
        if (way == Way::links) CHECK(shared.aside > (is_all_short ? 140'000 : 100'000));
      }
    }
  }
}

TEST_CASE("waiting for one thing does not wait for another") {
  MotifStage stage(Way::endpoints, 3);
  Instant first;
  stage.run([&](Rank& me) -> Task {
    if (me.id() == 0) {
      const Pending near = me.irecv(1, 0);
      me.irecv(2, 0);
      co_await me.wait(near);
      first = me.now();
      co_await me.wait_all();
    }
    if (me.id() == 2) co_await me.compute(Duration{9'000'000});
    if (me.id() != 0) co_await me.send(0, 0, Bytes{8});
  });
  CHECK(first.ps < 2'000'000);
  CHECK(stage.job().rank(0).now().ps > 9'000'000);
}

TEST_CASE("phases add up to the time of the ranks") {
  MotifStage stage(Way::endpoints, 2);
  Job& job = stage.job();
  const std::uint16_t work = job.phases().named("work");
  const std::uint16_t rest = job.phases().named("rest");
  CHECK(job.phases().named("work") == work);
  stage.run([&](Rank& me) -> Task {
    me.enter(work);
    co_await me.compute(Duration{1'000});
    me.enter(rest);
    co_await me.compute(Duration{me.id() == 0 ? 3'000U : 5'000U});
  });
  const auto phases = job.phases().means(2);
  CHECK(phases[0].first == "work");
  CHECK(phases[0].second.ps == 1'000);
  CHECK(phases[1].second.ps == 4'000);
}

TEST_CASE("a job that cannot end says who waits for what") {
  MotifStage stage(Way::links, 2);
  std::string sentence;
  try {
    stage.run([](Rank& me) -> Task {
      if (me.id() == 1) co_await me.recv(0, 42);
    });
  } catch (const Standstill& standstill) {
    sentence = standstill.what();
  }
  CHECK(sentence ==
        "the job stands still: 1 of 2 ranks have not ended; rank 1 waits for a message of rank 0 with tag 42 that "
        "nobody sends");
}

TEST_CASE("what a program throws ends the job") {
  MotifStage stage(Way::endpoints, 2);
  CHECK_THROWS_AS(stage.run([](Rank& me) -> Task {
    co_await me.compute(Duration{1});
    throw SpecError("no");
  }),
                  SpecError);
}

TEST_CASE("a rank at rest takes less than 1 KB, and what is under way less than 64 bytes") {
  CHECK(sizeof(Rank) + sizeof(Task) < 256);
  CHECK(sizeof(Record) + sizeof(Posted) <= 64);
}

}  // namespace
}  // namespace dryfly::motif
