#include "conductor/command_queue.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace dryfly {
namespace {

using wire::CommandKind;

constexpr HostLatencies to_nic{.command = Duration{300}, .completion = Duration{300}};
constexpr HostLatencies to_memory{.command = Duration{100}, .completion = Duration{100}};
constexpr RankId rank{1};
constexpr EndpointId endpoint{wire::make_address(1, 0)};

// Takes what is due, and notes when.
class Stand final : public Handler {
 public:
  Stand() { engine.attach(ComponentClass::host, *this); }

  std::uint32_t command(std::uint64_t at_ps, CommandKind kind = CommandKind::receive, std::uint32_t flags = 0) {
    const std::uint32_t slot = commands.allocate();
    commands[slot].rank = rank;
    commands[slot].command.kind = kind;
    commands[slot].command.at_ps = at_ps;
    commands[slot].command.flags = flags;
    return slot;
  }
  void push_all(const std::vector<std::uint32_t>& slots) {
    for (const std::uint32_t slot : slots) queue.push(rank, slot);
  }
  void handle(dryfly::Event event) override {
    queue.event_handled();
    const Line line = due_of(event) == Due::at_nic ? Line::to_nic : Line::to_memory;
    for (std::uint32_t slot = queue.take_due(rank, line); slot != no_slot; slot = queue.take_due(rank, line)) {
      if (!queue.must_wait(slot)) taken.emplace_back(engine.now().ps, slot);
    }
  }

  using Taken = std::vector<std::pair<std::uint64_t, std::uint32_t>>;
  Engine engine;
  OpenCommands commands;
  Distances distances{2, to_nic, to_memory};
  CommandQueue queue{engine, commands, 2, distances};
  Taken taken;
};

TEST_CASE("a command reaches its NIC one latency after its stamp, in the rank's order") {
  Stand stand;
  const std::uint32_t first = stand.command(1000);
  const std::uint32_t second = stand.command(1000);
  const std::uint32_t third = stand.command(5000);
  stand.push_all({first, second, third});
  CHECK(stand.queue.events_pending() == 1);  // only the oldest is among the events
  stand.engine.run(never);
  CHECK(stand.taken == Stand::Taken{{1300, first}, {1300, second}, {5300, third}});
  CHECK(stand.queue.is_empty(rank));
  CHECK(stand.queue.events_scheduled() == 2);
  CHECK(stand.queue.events_pending() == 0);
}

TEST_CASE("a command whose instant has passed reaches its NIC now") {
  Stand stand;
  const std::uint32_t first = stand.command(1000);
  stand.push_all({first});
  stand.engine.run(never);
  const std::uint32_t late = stand.command(500);  // due at 800; it is 1300
  stand.push_all({late});
  stand.engine.run(never);
  CHECK(stand.taken == Stand::Taken{{1300, first}, {1300, late}});
}

TEST_CASE("a command to memory is there sooner, also before one that was given earlier to the NIC") {
  Stand stand;
  constexpr EndpointId in_memory{wire::make_address(1, 1)};
  stand.distances.open(in_memory, true);
  const std::uint32_t far = stand.command(1000);
  const std::uint32_t near = stand.command(1100);
  stand.commands[near].command.endpoint = 1;
  stand.push_all({far, near});
  CHECK_FALSE(stand.queue.is_empty(rank));
  stand.engine.run(never);
  CHECK(stand.taken == Stand::Taken{{1200, near}, {1300, far}});
  CHECK(stand.queue.is_empty(rank));
}

TEST_CASE("what is void is released and never taken") {
  Stand stand;
  const std::uint32_t receive = stand.command(1000);
  const std::uint32_t cancel = stand.command(1000, CommandKind::cancel);
  stand.push_all({receive, cancel});
  stand.queue.release_if(rank, [](const OpenCommand& open) { return open.command.kind == CommandKind::cancel; });
  CHECK(stand.queue.contains(rank, receive));
  CHECK_FALSE(stand.queue.contains(rank, cancel));
  CHECK(stand.commands.in_use() == 1);
  stand.engine.run(never);
  CHECK(stand.taken == Stand::Taken{{1300, receive}});
}

TEST_CASE("a fenced send waits until what went out before it is complete, and what comes after it waits behind it") {
  Stand stand;
  stand.queue.open_fences(endpoint);
  const std::uint32_t before = stand.command(1000, CommandKind::send);
  const std::uint32_t fenced = stand.command(1000, CommandKind::write, wire::command_flag::fence);
  const std::uint32_t after = stand.command(1000, CommandKind::send);
  const std::uint32_t receive = stand.command(1000);  // does not go out
  stand.push_all({before, fenced, after, receive});
  stand.engine.run(never);
  CHECK(stand.taken == Stand::Taken{{1300, before}, {1300, receive}});
  stand.queue.completed(endpoint);
  stand.engine.run(never);
  CHECK(stand.taken == Stand::Taken{{1300, before}, {1300, receive}, {1300, fenced}, {1300, after}});
}

TEST_CASE("an end-point that closes gives back what still waited for a fence") {
  Stand stand;
  stand.queue.open_fences(endpoint);
  const std::uint32_t before = stand.command(1000, CommandKind::send);
  const std::uint32_t fenced = stand.command(1000, CommandKind::send, wire::command_flag::fence);
  stand.push_all({before, fenced});
  stand.engine.run(never);
  CHECK(stand.queue.close_fences(endpoint) == std::vector<std::uint32_t>{fenced});
  CHECK_FALSE(stand.queue.must_wait(fenced));
}

}  // namespace
}  // namespace dryfly
