// Parts of nodes that are slower than the machine's, on every level: what they take longer, and that nobody else does.
#include "core/spec/slow_parts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "testing/motif_stage.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t MiB = 1 << 20;
constexpr std::uint64_t frame_ps = 2'112 * 40;  // of a full packet

struct Part {
  std::string kind;
  std::uint32_t number;
  std::uint64_t share_ppb;
};

fabric::SampleMachine with(const std::vector<Part>& parts) {
  fabric::SampleMachine machine;
  machine.routing = "minimal";
  machine.more += "slow.count " + std::to_string(parts.size()) + "\n";
  for (std::size_t n = 0; n < parts.size(); ++n) {
    const std::string name = "slow." + std::to_string(n) + ".";
    machine.more += name + "kind " + parts[n].kind + "\n" + name + "number " + std::to_string(parts[n].number) + "\n" +
                    name + "share_ppb " + std::to_string(parts[n].share_ppb) + "\n";
  }
  return machine;
}

// When `to` has 16 messages of a MiB from `from`, all under way at once.
double stream_ps(Way way, const std::vector<Part>& parts, std::uint32_t from, std::uint32_t to) {
  constexpr int count = 16;
  MotifStage stage(way, 4, 1, with(parts));
  Instant end;
  stage.run([&](Rank& me) -> Task {
    if (me.id() != from && me.id() != to) co_return;
    for (int n = 0; n < count; ++n) {
      if (me.id() == from) me.isend(to, 7, Bytes{MiB});
      if (me.id() == to) me.irecv(from, 7);
    }
    co_await me.wait_all();
    end = std::max(end, me.now());
  });
  return static_cast<double>(end.ps);
}

TEST_CASE("a NIC that has a part of its link's rate from and to memory streams at that, and its neighbours as ever") {
  for (const Way way : {Way::endpoints, Way::links, Way::network}) {
    const double usual = stream_ps(way, {}, 0, 1);
    CHECK(usual == doctest::Approx(16.0 * 512 * frame_ps).epsilon(0.02));
    for (const double share : {0.5, 0.9}) {
      const auto ppb = static_cast<std::uint64_t>(share * 1e9);
      // Payload alone crosses to memory, without the headers of its packets.
      const double slow = 16.0 * 512 * 2'048 * 40 / share;
      CHECK(stream_ps(way, {{"nic", 0, ppb}}, 0, 1) == doctest::Approx(std::max(slow, usual)).epsilon(0.03));
      CHECK(stream_ps(way, {{"nic", 1, ppb}}, 0, 1) == doctest::Approx(std::max(slow, usual)).epsilon(0.03));
      CHECK(stream_ps(way, {{"nic", 0, ppb}}, 2, 3) == usual);
    }
  }
}

// How long a message takes that is alone.
double message_ps(Way way, const std::vector<Part>& parts, std::uint64_t bytes) {
  MotifStage stage(way, 4, 1, with(parts));
  Instant end;
  stage.run([&](Rank& me) -> Task {
    if (me.id() == 0) co_await me.send(1, 7, Bytes{bytes});
    if (me.id() == 1) {
      co_await me.recv(0, 7);
      end = me.now();
    }
  });
  return static_cast<double>(end.ps);
}

TEST_CASE("a message that is alone takes longer too by a slow NIC, on every level, and no longer by two") {
  const Part source{"nic", 0, 250'000'000};
  const Part target{"nic", 1, 250'000'000};
  for (const std::uint64_t bytes : {std::uint64_t{1} << 12, std::uint64_t{1} << 16, MiB}) {
    CAPTURE(bytes);
    const auto packets = static_cast<double>((bytes + 2'047) / 2'048);
    const double longer = packets * (2'048 * 40 / 0.25 - frame_ps);
    for (const Way way : {Way::endpoints, Way::links}) {
      for (const std::vector<Part>& parts : {std::vector{source}, std::vector{target}, std::vector{source, target}}) {
        CHECK(message_ps(way, parts, bytes) - message_ps(way, {}, bytes) == doctest::Approx(longer).epsilon(0.1));
      }
    }
    // A bus beside packets gives what it has by intervals, within which short messages pass.
    if (bytes < 1 << 16) continue;
    const double network = message_ps(Way::network, {source}, bytes) - message_ps(Way::network, {}, bytes);
    CHECK(network == doctest::Approx(longer).epsilon(0.35));
  }
}

TEST_CASE("of two entries for a NIC the slower counts, and a share that is all takes next to nothing") {
  const double usual = stream_ps(Way::links, {}, 0, 1);
  CHECK(stream_ps(Way::links, {{"nic", 0, 500'000'000}, {"nic", 0, 250'000'000}}, 0, 1) ==
        stream_ps(Way::links, {{"nic", 0, 250'000'000}}, 0, 1));
  CHECK(stream_ps(Way::links, {{"nic", 0, 1'000'000'000}}, 0, 1) == doctest::Approx(usual).epsilon(0.001));
}

// How long rank 0 has computed for, and when rank 1 of its node has a message of a MiB.
std::vector<std::uint64_t> on_node_ps(const std::vector<Part>& parts, Duration work, std::uint64_t bytes) {
  MotifStage stage(Way::links, 2, 2, with(parts));
  std::vector<std::uint64_t> ends(2);
  stage.run([&](Rank& me) -> Task {
    if (me.id() == 0) {
      const Instant begun = me.now();
      co_await me.compute(work);
      ends[0] = (me.now() - begun).ps;
    }
    co_await me.gather();
    const Instant begun = me.now();
    if (me.id() == 0) co_await me.send(1, 7, Bytes{bytes});
    if (me.id() == 1) {
      co_await me.recv(0, 7);
      ends[1] = (me.now() - begun).ps;
    }
  });
  return ends;
}

TEST_CASE("slow cores take longer for all that they do, and slow memory for what it copies") {
  const Duration work{1'000'000};
  const auto usual = on_node_ps({}, work, MiB);
  CHECK(usual[0] == work.ps);
  const auto cpu = on_node_ps({{"cpu", 0, 800'000'000}}, work, MiB);
  CHECK(cpu[0] == work.ps * 10 / 8);
  CHECK(on_node_ps({{"cpu", 1, 800'000'000}}, work, MiB) == usual);
  const auto memory = on_node_ps({{"memory", 0, 500'000'000}}, work, MiB);
  CHECK(memory[0] == work.ps);
  const auto copy_ps = static_cast<double>(usual[1] - on_node_ps({}, work, 0)[1]);
  CHECK(static_cast<double>(memory[1] - usual[1]) == doctest::Approx(copy_ps).epsilon(0.001));
  CHECK(on_node_ps({{"memory", 1, 500'000'000}}, work, MiB) == usual);
}

TEST_CASE("ranks that gather go on together, when the last has come") {
  MotifStage stage(Way::links, 4);
  std::vector<Instant> ends(4);
  stage.run([&](Rank& me) -> Task {
    for (int round = 0; round < 3; ++round) {
      co_await me.compute(Duration{1'000 * (1 + (me.id() + round) % 4)});
      co_await me.gather();
    }
    ends[me.id()] = me.now();
  });
  for (const Instant end : ends) CHECK(end.ps == 3 * 4'000);
}

}  // namespace
}  // namespace dryfly::motif
