// The conductor with ranks that use the wire directly, without libfabric or MPI: forked children attach, exchange
// messages and read their clocks.
#include "conductor/conductor.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <thread>

#include "rank/channel.hpp"
#include "testing/test_machine.hpp"
#include "wire/futex.hpp"

// As the preload's: the provider's side of the wire then looks here.
extern "C" {
dryfly::rank::Self dryfly_self{};
}

namespace {

using namespace dryfly;

struct Outcome {
  std::string result;  // JSON
  std::string status;
};

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(descriptor, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

// Runs `program(channel)` in one child per rank; a child that returns false makes the test fail.
Outcome run_ranks(const std::string& spec, const std::function<bool(rank::Channel&, std::uint32_t)>& program) {
  static int run_number = 0;
  const std::string name = "dryfly-test-" + std::to_string(getpid()) + "-" + std::to_string(run_number++);
  const std::string result = "/tmp/" + name + ".json";
  int status[2];
  int life[2];
  REQUIRE(pipe(status) == 0);
  REQUIRE(pipe(life) == 0);
  pid_t children[2];
  int go[2];
  REQUIRE(pipe(go) == 0);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0) continue;
    close(life[1]);
    close(go[1]);  // or a conductor that fails would leave the children waiting for each other
    char byte = 0;
    [[maybe_unused]] const auto got = read(go[0], &byte, 1);
    setenv("DRYFLY_CHANNEL", name.c_str(), 1);
    setenv("DRYFLY_RANK", std::to_string(rank).c_str(), 1);
    rank::Channel* channel = rank::Channel::attach();
    if (channel == nullptr) _exit(2);
    channel->gate(wire::GateKind::start);
    const bool good = program(*channel, rank);
    while (channel->gate(wire::GateKind::end) == 0) {
      while (const wire::Event* event = channel->peek()) {
        channel->place(*event, nullptr);
        channel->pop();
      }
    }
    _exit(good ? 0 : 1);
  }
  std::thread simulator([&] {
    Conductor conductor(Spec::parse(spec), name, result, StatusLine(status[1]), StatusLine(-1), life[0]);
    [[maybe_unused]] const auto written = write(go[1], "gg", 2);
    conductor.run();
  });
  for (const pid_t child : children) {
    int how = 0;
    waitpid(child, &how, 0);
    CHECK(WIFEXITED(how));
    CHECK(WEXITSTATUS(how) == 0);
  }
  close(life[1]);
  simulator.join();
  close(status[1]);
  Outcome outcome;
  outcome.status = read_all(status[0]);
  std::ostringstream text;
  text << std::ifstream(result).rdbuf();
  outcome.result = text.str();
  std::remove(result.c_str());
  for (const int descriptor : {status[0], life[0], go[0], go[1]}) close(descriptor);
  return outcome;
}

void open_endpoint(rank::Channel& channel) {
  wire::Command command{};
  command.kind = wire::CommandKind::open_endpoint;
  channel.push(command, nullptr);
}

void post_receive(rank::Channel& channel, void* buffer, std::uint64_t bytes, std::uint64_t context) {
  channel.charge(channel.header().costs.receive_ps);
  wire::Command command{};
  command.kind = wire::CommandKind::tagged_receive;
  command.flags = wire::command_flag::any_source;
  command.tag = 7;
  command.buffer = reinterpret_cast<std::uint64_t>(buffer);
  command.length = bytes;
  command.context = context;
  channel.push(command, nullptr);
}

void send(rank::Channel& channel, std::uint32_t peer, const void* payload, std::uint64_t bytes, bool completion) {
  channel.charge(channel.header().costs.send_ps);
  wire::Command command{};
  command.kind = wire::CommandKind::tagged_send;
  command.peer = wire::make_address(peer, 0);
  command.tag = 7;
  if (completion) command.flags = wire::command_flag::wants_completion;
  channel.push_with_payload(command, payload, bytes, completion);
}

wire::EventKind next_event(rank::Channel& channel) {
  while (channel.peek() == nullptr) {
    channel.charge(channel.header().costs.poll_ps);
    channel.polls().idle();
  }
  const wire::Event* event = channel.peek();
  channel.charge(channel.header().costs.completion_ps);
  const auto kind = event->kind;
  channel.place(*event, nullptr);
  channel.pop();
  return kind;
}

bool ping_pong(rank::Channel& channel, std::uint32_t rank, int rounds, std::size_t bytes) {
  std::vector<char> outgoing(bytes);
  std::vector<char> incoming(bytes);
  open_endpoint(channel);
  for (int round = 0; round < rounds; ++round) {
    post_receive(channel, incoming.data(), bytes, 1);
    std::fill(outgoing.begin(), outgoing.end(), static_cast<char>(round + static_cast<int>(rank)));
    const bool large = bytes > 192;
    const int events = large ? 2 : 1;
    if (rank == 0) send(channel, 1, outgoing.data(), bytes, large);
    for (int event = 0; event < events; ++event) {
      if (rank == 1 && event == 0) {
        if (next_event(channel) != wire::EventKind::received) return false;
        send(channel, 0, outgoing.data(), bytes, large);
        continue;
      }
      next_event(channel);
    }
    const char expected = static_cast<char>(round + static_cast<int>(1 - rank));
    for (const char byte : incoming) {
      if (byte != expected) return false;
    }
  }
  return true;
}

std::string field(const std::string& json, const std::string& name) {
  const auto at = json.find("\"" + name + "\":");
  REQUIRE(at != std::string::npos);
  return json.substr(at + name.size() + 3, json.find_first_of(",}", at) - at - name.size() - 3);
}

TEST_CASE("two ranks exchange messages of every protocol and find each other's bytes") {
  for (const std::size_t bytes : {0, 8, 192, 193, 4096, 18433, 18434, 1 << 20}) {
    CAPTURE(bytes);
    const auto outcome = run_ranks(
        spec_text(), [&](rank::Channel& channel, std::uint32_t rank) { return ping_pong(channel, rank, 5, bytes); });
    CHECK(field(outcome.result, "messages") == "10");
    CHECK(field(outcome.result, "bytes") == std::to_string(10 * bytes));
  }
}

TEST_CASE("large payloads arrive also where cross-memory attach is forbidden") {
  run_ranks(spec_text("run.cross_memory 0\n"),
            [](rank::Channel& channel, std::uint32_t rank) { return ping_pong(channel, rank, 3, 1 << 20); });
}

TEST_CASE("the same run has the same fingerprint and the same virtual time") {
  const auto once = [] {
    return run_ranks(spec_text(),
                     [](rank::Channel& channel, std::uint32_t rank) { return ping_pong(channel, rank, 200, 8); });
  };
  const auto first = once();
  const auto second = once();
  CHECK(field(first.result, "fingerprint") == field(second.result, "fingerprint"));
  CHECK(field(first.result, "virtual_time_ps") == field(second.result, "virtual_time_ps"));
}

TEST_CASE("a rank that polls finds a completion at its instant however long the other side's copy takes") {
  // The longer the way from a rank to its NIC, the further another may be ahead of the rank that has yet to copy.
  std::string spec = spec_text();
  const std::string latency = "nic.command_latency_ps 300000";
  spec.replace(spec.find(latency), latency.size(), "nic.command_latency_ps 3000000");
  const auto run_with = [&](useconds_t copy_delay_us) {
    return run_ranks(spec, [&](rank::Channel& channel, std::uint32_t rank) {
      static char buffer[1 << 20];
      open_endpoint(channel);
      if (rank == 0) {
        send(channel, 1, buffer, sizeof buffer, true);
        for (channel.polls().settle(); channel.peek() == nullptr; channel.polls().settle())
          channel.charge(channel.header().costs.poll_ps);
      } else {
        post_receive(channel, buffer, sizeof buffer, 1);
        while (channel.peek() == nullptr) channel.polls().idle();
        usleep(copy_delay_us);
      }
      return next_event(channel) == (rank == 0 ? wire::EventKind::sent : wire::EventKind::received);
    });
  };
  const auto at_once = run_with(0);
  const auto late = run_with(50'000);
  CHECK(field(at_once.result, "virtual_time_ps") == field(late.result, "virtual_time_ps"));
}

// Rank 1 shows a word and asks for it to change twice. The first time it waits, and learns how long that takes. The
// second time it stops just before, closer than commands take to a NIC: the network may not have run ahead of it.
bool watch_a_word(rank::Channel& channel) {
  static std::int64_t word = 0;
  wire::Command region{};
  region.kind = wire::CommandKind::memory_region;
  region.key = 5;
  region.buffer = reinterpret_cast<std::uint64_t>(&word);
  region.length = sizeof word;
  channel.push(region, nullptr);
  dryfly_self.page->watches_memory.store(1);
  dryfly_self.watches_memory.store(1);
  channel.gate(wire::GateKind::drain);

  const std::uint64_t first_asked = channel.now();
  send(channel, 0, nullptr, 0, false);
  while (channel.peek() == nullptr) channel.polls().idle();
  const wire::Event change = *channel.peek();
  channel.pop();
  if (change.kind != wire::EventKind::memory_changed || word != 1) return false;

  const std::uint64_t to_change = change.at_ps - 300'000 - first_asked;  // without the completion latency
  const std::uint64_t second_asked = channel.now();
  send(channel, 0, nullptr, 0, false);
  channel.charge(second_asked + to_change - 150'000 - channel.now());
  channel.gate(wire::GateKind::poll);
  usleep(50'000);
  const bool unchanged = word == 1;
  channel.charge(300'000);
  channel.gate(wire::GateKind::poll);
  return unchanged && word == 2 && channel.peek() == nullptr;
}

TEST_CASE("memory that a rank watches changes at its instant: not before, and a waiting rank wakes") {
  run_ranks(spec_text(), [](rank::Channel& channel, std::uint32_t rank) {
    open_endpoint(channel);
    if (rank == 1) return watch_a_word(channel);
    for (std::int64_t value = 1; value <= 2; ++value) {
      post_receive(channel, nullptr, 0, 1);
      if (next_event(channel) != wire::EventKind::received) return false;
      wire::Command write{};
      write.kind = wire::CommandKind::write;
      write.peer = wire::make_address(1, 0);
      write.key = 5;
      channel.push_with_payload(write, &value, sizeof value, true);
    }
    return true;
  });
}

TEST_CASE("a rank goes on beside one that computes, as far as that one says that it has come") {
  void* const shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto* const passed = new (shared) std::atomic<std::uint32_t>{0};
  constexpr std::uint64_t step_ps = 1'000'000'000;
  run_ranks(spec_text(), [&](rank::Channel& channel, std::uint32_t rank) {
    open_endpoint(channel);
    const std::uint64_t began_ps = channel.now();
    if (rank == 0) {
      for (std::uint32_t steps = 1; steps <= 3; ++steps) {
        channel.charge(step_ps);
        channel.gate(wire::GateKind::poll);  // all that is visible by now has come
        passed->store(steps);
      }
      return true;
    }
    // As a herald does it; its own clock stands all the while.
    for (std::uint32_t steps = 1; steps <= 3; ++steps) {
      usleep(20'000);
      if (passed->load() == steps) return false;  // before it could be certain
      dryfly_self.page->progress.reached_ps.store(began_ps + steps * step_ps + step_ps / 2);
      dryfly_self.header->doorbell.fetch_add(1);
      wire::futex_wake(dryfly_self.header->doorbell);
      for (int looks = 0; passed->load() < steps; ++looks) {
        if (looks == 5000) return false;
        usleep(1000);
      }
    }
    channel.charge(4 * step_ps);
    return true;
  });
  munmap(shared, 4096);
}

// What the conductor says of two ranks that wait for ever; the run ends when their parent kills them.
std::string said_of_deadlock(const std::function<void(rank::Channel&, std::uint32_t)>& wait) {
  const std::string spec = spec_text();
  const std::string name = "dryfly-test-deadlock-" + std::to_string(getpid());
  int status[2];
  int life[2];
  REQUIRE(pipe(status) == 0);
  REQUIRE(pipe(life) == 0);
  pid_t children[2];
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] != 0) continue;
    close(life[1]);
    usleep(100'000);
    setenv("DRYFLY_CHANNEL", name.c_str(), 1);
    setenv("DRYFLY_RANK", std::to_string(rank).c_str(), 1);
    rank::Channel* channel = rank::Channel::attach();
    if (channel == nullptr) _exit(2);
    channel->gate(wire::GateKind::start);
    wait(*channel, rank);
    _exit(1);
  }
  std::thread simulator([&] {
    Conductor conductor(Spec::parse(spec), name, "/dev/null", StatusLine(status[1]), StatusLine(-1), life[0]);
    conductor.run();
  });
  std::string said;
  char buffer[4096];
  while (said.find("deadlock-end") == std::string::npos) {
    const ssize_t got = read(status[0], buffer, sizeof buffer);
    REQUIRE(got > 0);
    said.append(buffer, static_cast<std::size_t>(got));
  }
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  close(life[1]);
  simulator.join();
  for (const int descriptor : {status[0], status[1], life[0]}) close(descriptor);
  return said;
}

void meet_the_others(rank::Channel& channel, std::uint64_t meeting) {
  dryfly_self.page->gate.meeting = meeting;
  dryfly_self.page->gate.meeting_size = 2;
  channel.gate(wire::GateKind::meet);
}

TEST_CASE("ranks that all wait while nothing is in flight are reported as a deadlock") {
  const std::string said = said_of_deadlock([](rank::Channel& channel, std::uint32_t) {
    open_endpoint(channel);
    static char buffer[8];
    post_receive(channel, buffer, sizeof buffer, 1);  // of a message that nobody sends
    next_event(channel);
  });
  CHECK(said.find("deadlock-rank 0") != std::string::npos);
  CHECK(said.find("deadlock-rank 1") != std::string::npos);
}

bool peek_once(rank::Channel& channel) {
  wire::Command command{};
  command.kind = wire::CommandKind::tagged_peek;
  command.flags = wire::command_flag::any_source;
  command.tag = 7;
  channel.push(command, nullptr);
  return next_event(channel) == wire::EventKind::peeked;
}

TEST_CASE("ranks of which some look for messages again and again while the others wait are reported as a deadlock") {
  const std::string said = said_of_deadlock([](rank::Channel& channel, std::uint32_t rank) {
    open_endpoint(channel);
    dryfly_self.page->call_index.store(1);  // in an MPI call, and the same one all the time
    while (rank == 0 && peek_once(channel)) {
    }
    next_event(channel);
  });
  CHECK(said.find("deadlock-rank 0") != std::string::npos);
  CHECK(said.find("deadlock-rank 1") != std::string::npos);
}

TEST_CASE("neither a test loop nor calls that end without an event are a deadlock, however many there are") {
  // More than a standstill has rounds, and than there are peeks between two looks at them.
  run_ranks(spec_text(), [](rank::Channel& channel, std::uint32_t rank) {
    open_endpoint(channel);
    dryfly_self.page->call_index.store(1);
    for (int call = 0; call < 20'000; ++call) {
      dryfly_self.page->call_count.fetch_add(1);
      if (rank == 0 && !peek_once(channel)) return false;
    }
    for (int call = 0; call < 10'000; ++call) {
      dryfly_self.page->call_count.fetch_add(1);
      channel.polls().idle();
    }
    return true;
  });
}

TEST_CASE("ranks at different meetings are reported as a deadlock") {
  const std::string said =
      said_of_deadlock([](rank::Channel& channel, std::uint32_t rank) { meet_the_others(channel, rank); });
  CHECK(said.find("deadlock-rank 0") != std::string::npos);
  CHECK(said.find("deadlock-rank 1") != std::string::npos);
}

TEST_CASE("ranks that meet go on at one instant, which the last of them decides") {
  // Rank 0 comes at 1 us, rank 1 at 5 us; then 300 ns to the NIC and 300 ns back, as for a command.
  constexpr std::uint64_t us = 1'000'000;
  run_ranks(spec_text(), [](rank::Channel& channel, std::uint32_t rank) {
    const std::uint64_t begin = channel.now();
    for (std::uint64_t round = 1; round <= 3; ++round) {
      channel.charge(rank == 0 ? us : 5 * us);
      meet_the_others(channel, 77);
      if (channel.now() != begin + round * (5 * us + 600'000)) return false;
    }
    return true;
  });
}

// Which of two ranks goes on first, of which one fails at once and the other, by its clock so much later, in a while.
std::uint32_t first_to_fail(std::uint64_t after_rank_0_ps, std::uint32_t late) {
  void* const shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto* const first = new (shared) std::atomic<std::uint32_t>{2};
  run_ranks(spec_text(), [&](rank::Channel& channel, std::uint32_t rank) {
    if (rank == late) usleep(100'000);
    channel.charge(rank == 0 ? 1'000'000 : 1'000'000 + after_rank_0_ps);
    channel.gate(wire::GateKind::fail);
    std::uint32_t nobody = 2;
    first->compare_exchange_strong(nobody, rank);
    return true;
  });
  const std::uint32_t rank = first->load();
  munmap(shared, 4096);
  return rank;
}

TEST_CASE("of ranks that are about to end the job the first in virtual time goes on, and of equals the lower number") {
  CHECK(first_to_fail(0, 0) == 0);
  CHECK(first_to_fail(0, 1) == 0);
  // Nearer than a command's latency: the network does not keep the two apart.
  CHECK(first_to_fail(1000, 0) == 0);
}

}  // namespace
