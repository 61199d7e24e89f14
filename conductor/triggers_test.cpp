#include "conductor/triggers.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace dryfly {
namespace {

constexpr RankId rank{3};

class Stand final : public Handler {
 public:
  Stand() { engine.attach(ComponentClass::host, *this); }

  std::uint32_t command(std::uint32_t trigger, std::uint64_t threshold, std::uint64_t context = 0,
                        std::uint32_t endpoint = 0) {
    const std::uint32_t slot = commands.allocate();
    wire::Command& made = commands[slot].command;
    commands[slot].rank = rank;
    made.kind = wire::CommandKind::write;
    made.trigger = trigger;
    made.threshold = threshold;
    made.context = context;
    made.endpoint = endpoint;
    return slot;
  }
  void handle(Event event) override {
    CHECK(due_of(event) == Due::triggered);
    CHECK(rank_of(event) == rank);
    triggers.event_handled();
    for (std::uint32_t slot = triggers.take_due(rank); slot != no_slot; slot = triggers.take_due(rank)) {
      issued.push_back(slot);
    }
  }

  Engine engine;
  OpenCommands commands;
  Triggers triggers{engine, commands};
  std::vector<std::uint32_t> issued;
};

TEST_CASE("a command waits until its counter is there, and never when it is there already") {
  Stand stand;
  const std::uint32_t first = stand.command(1, 2);
  const std::uint32_t other = stand.command(2, 1);
  CHECK(stand.triggers.holds(first));
  CHECK(stand.triggers.holds(other));
  stand.triggers.count(rank, 1);
  stand.engine.run(never);
  CHECK(stand.issued.empty());
  stand.triggers.count(rank, 1);
  CHECK(stand.issued.empty());  // an event of its own
  CHECK(stand.triggers.events_pending() == 1);
  stand.engine.run(never);
  CHECK(stand.issued == std::vector<std::uint32_t>{first});
  CHECK(stand.triggers.events_pending() == 0);
  CHECK_FALSE(stand.triggers.holds(stand.command(1, 2)));
  CHECK_FALSE(stand.triggers.holds(stand.command(9, 0)));
}

TEST_CASE("nobody counts operations without a counter, and a counter is its rank's own") {
  Stand stand;
  CHECK(stand.triggers.holds(stand.command(1, 1)));
  stand.triggers.count(rank, 0);
  stand.triggers.count(RankId{4}, 1);
  stand.engine.run(never);
  CHECK(stand.issued.empty());
}

TEST_CASE("what is due goes in the order in which it came; a counter may be set back") {
  Stand stand;
  const std::uint32_t late = stand.command(1, 5);
  const std::uint32_t early = stand.command(1, 3);
  CHECK(stand.triggers.holds(late));
  CHECK(stand.triggers.holds(early));
  stand.triggers.set(rank, 1, 7);
  stand.engine.run(never);
  CHECK(stand.issued == std::vector<std::uint32_t>{late, early});
  stand.triggers.set(rank, 1, 0);
  CHECK(stand.triggers.holds(stand.command(1, 1)));
}

TEST_CASE("more than there are entries wait for one, in order, even if their counters are there") {
  Stand stand;
  std::vector<std::uint32_t> held;
  for (std::size_t n = 0; n < Triggers::usual_entries; ++n) {
    held.push_back(stand.command(1, n == 0 ? 1 : 2));
    CHECK(stand.triggers.holds(held.back()));
  }
  CHECK(stand.triggers.without_entry(rank) == 0);
  const std::uint32_t beyond = stand.command(1, 0);
  CHECK(stand.triggers.holds(beyond));
  stand.engine.run(never);
  CHECK(stand.issued.empty());
  CHECK(stand.triggers.without_entry(rank) == 1);
  stand.triggers.count(rank, 1);
  stand.engine.run(never);
  CHECK(stand.triggers.without_entry(rank) == 0);
  CHECK(stand.triggers.entries_missed() == 1);
  CHECK(stand.triggers.waiting_max() == Triggers::usual_entries + 1);
  CHECK(stand.issued == std::vector<std::uint32_t>{held.front(), beyond});
}

TEST_CASE("an end-point that closes leaves its entries to others, and counts, which are of none, where they are") {
  Stand stand;
  for (std::size_t n = 0; n < Triggers::usual_entries; ++n) CHECK(stand.triggers.holds(stand.command(1, 1, 0, 5)));
  const std::uint32_t beyond = stand.command(2, 0);
  CHECK(stand.triggers.holds(beyond));
  const std::uint32_t count = stand.command(2, 1);
  stand.commands[count].command.kind = wire::CommandKind::count;
  CHECK(stand.triggers.holds(count));
  CHECK(stand.triggers.take_all(EndpointId{wire::make_address(rank.value, 5)}).size() == Triggers::usual_entries);
  stand.engine.run(never);
  CHECK(stand.issued == std::vector<std::uint32_t>{beyond});
  CHECK(stand.triggers.take_all(EndpointId{wire::make_address(rank.value, 0)}).empty());
  stand.triggers.count(rank, 2);
  stand.engine.run(never);
  CHECK(stand.issued == std::vector<std::uint32_t>{beyond, count});
}

TEST_CASE("another process of the rank finds its counters at 0") {
  Stand stand;
  stand.triggers.count(rank, 1);
  const std::uint32_t late = stand.command(0, 0);  // of the one before
  stand.commands[late].command.counter = 1;
  stand.triggers.begin(rank, 1);
  stand.triggers.count(stand.commands[late]);
  CHECK(stand.triggers.holds(stand.command(1, 1)));
  stand.commands[late].tenancy = 1;
  stand.triggers.count(stand.commands[late]);
  stand.engine.run(never);
  CHECK(stand.issued.size() == 1);
}

TEST_CASE("what is cancelled, or whose end-point closes, is never issued") {
  Stand stand;
  const std::uint32_t cancelled = stand.command(1, 1, 77);
  const std::uint32_t closed = stand.command(1, 1, 78, 5);
  const std::uint32_t left = stand.command(1, 1, 79);
  for (const std::uint32_t slot : {cancelled, closed, left}) CHECK(stand.triggers.holds(slot));
  CHECK(stand.triggers.take_out(rank, 77) == cancelled);
  CHECK(stand.triggers.take_out(rank, 77) == no_slot);
  CHECK(stand.triggers.take_all(EndpointId{wire::make_address(rank.value, 5)}) == std::vector<std::uint32_t>{closed});
  stand.triggers.count(rank, 1);
  stand.engine.run(never);
  CHECK(stand.issued == std::vector<std::uint32_t>{left});
}

}  // namespace
}  // namespace dryfly
