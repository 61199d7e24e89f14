// Processes that write nonsense into their command rings: the conductor says so, and serves the others on.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "conductor/conductor.hpp"
#include "rank/channel.hpp"
#include "testing/test_machine.hpp"
#include "wire/futex.hpp"

extern "C" dryfly::rank::Self dryfly_self;

namespace {

using namespace dryfly;
using wire::Command;
using wire::CommandKind;
namespace command_flag = wire::command_flag;

constexpr std::uint32_t seats = 16;

std::string served_spec() {
  std::string spec = spec_text();
  const std::string two = "run.ranks 2\n";
  spec.replace(spec.find(two), two.size(), "run.ranks " + std::to_string(seats) + "\n");
  for (std::uint32_t rank = 2; rank < seats; ++rank) {
    spec += "run.rank." + std::to_string(rank) + ".node 0\nrun.rank." + std::to_string(rank) + ".nic 0\n";
  }
  return spec + "run.served 1\n";
}

// Puts records into the ring of the process that it is in, without any of the channel's care.
class Scribbler {
 public:
  Scribbler() : page_(*dryfly_self.page), header_(*const_cast<wire::SegmentHeader*>(dryfly_self.header)) {}

  void write(const Command& command) {
    char* ring = reinterpret_cast<char*>(&page_ + 1);
    const std::uint64_t head = page_.command_head.load();
    const std::uint64_t place = head % header_.command_ring_bytes;
    std::memcpy(ring + place, &command, std::min<std::uint64_t>(sizeof command, header_.command_ring_bytes - place));
    page_.command_head.store(head + wire::command_bytes);
  }
  void skip(std::uint64_t bytes) { page_.command_head.fetch_add(bytes); }
  void ring_bell() {
    const std::uint32_t rank = rank_;
    header_.attention[rank / 64].fetch_or(std::uint64_t{1} << (rank % 64));
    header_.doorbell.fetch_add(1);
    wire::futex_wake(header_.doorbell);
  }
  std::uint64_t arena() const { return header_.arena.offset; }
  void set_rank(std::uint32_t rank) { rank_ = rank; }

 private:
  wire::RankPage& page_;
  wire::SegmentHeader& header_;
  std::uint32_t rank_ = 0;
};

using Deed = std::function<void(Scribbler&, rank::Channel&)>;

// A fabric on which processes do things, one after the other; afterwards one more joins that does nothing wrong.
class Fabric {
 public:
  Fabric() {
    REQUIRE(pipe(status_) == 0);
    REQUIRE(pipe(life_) == 0);
    simulator_ = std::thread([this] {
      Conductor conductor(Spec::parse(served_spec()), name_, "/dev/null", StatusLine(status_[1]), StatusLine(-1),
                          life_[0]);
      conductor.run();
    });
    read_until("ready\n");
  }
  ~Fabric() {
    close(life_[1]);
    simulator_.join();
    for (const int descriptor : {status_[0], status_[1], life_[0]}) close(descriptor);
  }

  // What the conductor has said by the time that it knows of the process's end.
  std::string after(const Deed& deed) {
    const pid_t child = fork();
    if (child == 0) join_and(deed);
    int how = 0;
    waitpid(child, &how, 0);
    CHECK(WIFEXITED(how));
    CHECK(WEXITSTATUS(how) == 0);
    return read_until(" " + std::to_string(child) + "\n", "left ");
  }

 private:
  [[noreturn]] void join_and(const Deed& deed) {
    setenv("DRYFLY_FABRIC", name_.c_str(), 1);
    setenv("DRYFLY_NODE", "0", 1);
    rank::Channel* channel = rank::Channel::attach();
    if (channel == nullptr) _exit(2);
    Command open{};
    open.kind = CommandKind::open_endpoint;
    channel->push(open, nullptr);
    Scribbler scribbler;
    scribbler.set_rank(channel->rank());
    deed(scribbler, *channel);
    scribbler.ring_bell();
    _exit(0);
  }

  std::string read_until(const std::string& end, const std::string& begin = "") {
    std::string said;
    char buffer[4096];
    for (;;) {
      const auto at = said.rfind(end);
      if (at != std::string::npos && said.rfind(begin, at) != std::string::npos) return said;
      const ssize_t got = read(status_[0], buffer, sizeof buffer);
      REQUIRE(got > 0);
      said.append(buffer, static_cast<std::size_t>(got));
    }
  }

  std::string name_ = "dryfly-damage-test-" + std::to_string(getpid()) + "-" + std::to_string(next_number());
  static int next_number() {
    static int number = 0;
    return number++;
  }
  int status_[2];
  int life_[2];
  std::thread simulator_;
};

Command plain(CommandKind kind) {
  Command command{};
  command.record_bytes = wire::command_bytes;
  command.kind = kind;
  return command;
}

std::string reason_in(const std::string& said) {
  const auto at = said.find("damaged ");
  if (at == std::string::npos) return "none";
  const auto second = said.find(' ', said.find(' ', at + 8) + 1);
  return said.substr(second + 1, said.find('\n', at) - second - 1);
}

}  // namespace

TEST_CASE("what cannot be a command is named, and the fabric stays up") {
  Fabric fabric;
  const auto reason = [&](CommandKind kind, const std::function<void(Command&)>& change) {
    const std::string said = fabric.after([&](Scribbler& scribbler, rank::Channel&) {
      Command command = plain(kind);
      change(command);
      scribbler.write(command);
    });
    // What is seen only when the command reaches the NIC may be said after the process has gone.
    return reason_in(said + fabric.after([](Scribbler&, rank::Channel&) {}));
  };
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.record_bytes = 0; }) == "length");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.record_bytes = 192; }) == "length");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.record_bytes = 100; }) == "length");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.record_bytes = wire::wrap_record; }) == "length");
  CHECK(reason(CommandKind{0}, [](Command&) {}) == "kind");
  CHECK(reason(CommandKind{77}, [](Command&) {}) == "kind");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.endpoint = 128; }) == "end-point");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.endpoint = 5; }) == "end-point");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.at_ps = ~0ULL - 1; }) == "instant");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.traffic_class = 6; }) == "traffic class");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.gpu = 17; }) == "GPU");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) { c.length = 1ULL << 60; }) == "size");
  CHECK(reason(CommandKind::tagged_send, [](Command& c) {
          c.flags = command_flag::payload_inline;
          c.length = 8;
        }) == "inline payload");
  CHECK(reason(CommandKind::write, [](Command& c) {
          c.flags = command_flag::payload_arena;
          c.length = 8;
          c.arena_offset = 64;
        }) == "payload");
  CHECK(reason(CommandKind::open_endpoint, [](Command& c) { c.peer = 1; }) == "NIC");
  CHECK(reason(CommandKind::open_endpoint, [](Command& c) { c.flags = command_flag::payload_inline; }) == "settings");
  CHECK(reason(CommandKind::atomic, [](Command& c) { c.length = 8; }) == "operands");
  CHECK(reason(CommandKind::receive_claimed, [](Command&) {}) == "claim");
  CHECK(reason(CommandKind::work_done, [](Command& c) { c.data = 1ULL << 31; }) == "work");
  CHECK(reason(CommandKind::tagged_receive, [](Command&) {}) == "none");
  const auto far = fabric.after([](Scribbler& scribbler, rank::Channel&) { scribbler.skip(1 << 20); });
  CHECK(reason_in(far) == "place");
}

TEST_CASE("a receive from an address that nobody has had waits, and harms nobody") {
  Fabric fabric;
  const auto said = fabric.after([](Scribbler& scribbler, rank::Channel&) {
    Command receive = plain(CommandKind::tagged_receive);
    receive.peer = wire::make_address(9, 3);
    scribbler.write(receive);
  });
  CHECK(reason_in(said) == "none");
}

TEST_CASE("whatever stands in a ring, the conductor lives") {
  Fabric fabric;
  int damaged = 0;
  constexpr int processes = 500;
  for (int seed = 0; seed < processes; ++seed) {
    CAPTURE(seed);
    const auto said = fabric.after([&](Scribbler& scribbler, rank::Channel& channel) {
      std::mt19937_64 random(static_cast<std::uint64_t>(seed));
      const auto odd = [&] {
        constexpr std::uint64_t some[] = {0, 1, 2, 64, 127, 192, 1 << 14, 1ULL << 31, 1ULL << 47, 1ULL << 63, ~0ULL};
        return random() % 2 != 0 ? some[random() % std::size(some)] : random();
      };
      for (int written = 0; written < 5; ++written) {
        Command command = plain(static_cast<CommandKind>(1 + random() % 18));
        command.flags = static_cast<std::uint32_t>(random() & 0xffff) & ~command_flag::payload_inline;
        command.context = random() % 4;
        command.claim = 8 * (random() % 4);
        command.length = 8 * (random() % 40);
        command.atomic_op = static_cast<std::uint8_t>(random() % 20);
        command.atomic_type = static_cast<std::uint8_t>(random() % 16);
        command.arena_offset = scribbler.arena() + wire::arena_granule * (random() % 64);
        command.peer = wire::make_address(random() % 2 != 0 ? channel.rank() : 3, random() % 2 != 0 ? 0 : 7);
        command.key = random() % 3;
        if (random() % 16 == 0) {
          char* bytes = reinterpret_cast<char*>(&command) + 8 * (random() % (sizeof command / 8));
          const std::uint64_t value = odd();
          std::memcpy(bytes, &value, sizeof value);
        }
        scribbler.write(command);
      }
    });
    if (reason_in(said) != "none") ++damaged;
  }
  CHECK(damaged > processes / 10);
  CHECK(damaged < processes * 9 / 10);
}
