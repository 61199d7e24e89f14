#include "core/engine/engine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

#include "core/unit/random.hpp"

namespace dryfly {
namespace {

using Order = std::pair<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t key_of(ComponentClass component_class, std::uint64_t rest) {
  return (static_cast<std::uint64_t>(component_class) << component_class_shift) | rest;
}

struct Recorder final : Handler {
  explicit Recorder(Engine& owner) : engine(owner) { engine.attach(ComponentClass::fabric, *this); }
  void handle(Event event) override {
    CHECK(engine.now().ps == event.at_ps);
    ran.emplace_back(event.at_ps, event.key);
    if (then) then(event);
  }
  Engine& engine;
  std::vector<Order> ran;
  std::function<void(Event)> then;
};

constexpr std::uint64_t hour_ps = 3'600'000'000'000'000;

TEST_CASE("events run by instant, then class, then key, whatever the order of insertion") {
  std::vector<Order> events;
  for (std::uint64_t at : {0ULL, 1ULL, 511ULL, 512ULL, 700ULL, 8'388'607ULL, 8'388'608ULL, 9'000'000ULL}) {
    for (std::uint64_t rest : {5ULL, 1ULL, 3ULL}) events.emplace_back(at, rest);
  }
  std::vector<Order> expected = events;
  std::sort(expected.begin(), expected.end());
  const RandomStream random{1, 0, Purpose::test};
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (std::size_t i = events.size(); i > 1; --i) {
      std::swap(events[i - 1], events[random.below(round * 1000 + i, static_cast<std::uint32_t>(i))]);
    }
    Engine engine;
    Recorder recorder{engine};
    for (const auto& [at, key] : events) engine.schedule(Instant{at}, key);
    engine.run(never);
    CHECK(recorder.ran == expected);
    CHECK(engine.events_run() == events.size());
  }
}

TEST_CASE("at one instant fabric events come before NIC events and these before host events") {
  Engine engine;
  std::vector<ComponentClass> ran;
  struct Named final : Handler {
    Named(std::vector<ComponentClass>& record, ComponentClass own) : ran_list(record), component_class(own) {}
    void handle(Event) override { ran_list.push_back(component_class); }
    std::vector<ComponentClass>& ran_list;
    ComponentClass component_class;
  };
  Named host{ran, ComponentClass::host};
  Named nic{ran, ComponentClass::nic};
  Named fabric{ran, ComponentClass::fabric};
  for (Named* handler : {&host, &nic, &fabric}) engine.attach(handler->component_class, *handler);
  for (Named* handler : {&host, &nic, &fabric}) engine.schedule(Instant{10}, key_of(handler->component_class, 7));
  engine.run(never);
  CHECK(ran == std::vector{ComponentClass::fabric, ComponentClass::nic, ComponentClass::host});
}

TEST_CASE("run stops before its limit, keeps now at the last event, and goes on later") {
  Engine engine;
  Recorder recorder{engine};
  for (std::uint64_t at : {10ULL, 20ULL, 30ULL}) engine.schedule(Instant{at}, 0);
  engine.run(Instant{20});
  CHECK(engine.now() == Instant{10});
  CHECK(engine.next() == Instant{20});
  engine.schedule(Instant{15}, 0);
  engine.run(Instant{21});
  CHECK(recorder.ran == std::vector<Order>{{10, 0}, {15, 0}, {20, 0}});
  engine.run(never);
  CHECK(engine.now() == Instant{30});
  CHECK(engine.next() == never);
}

TEST_CASE("a handler lowers the limit and nothing at or after it runs") {
  Engine engine;
  Recorder recorder{engine};
  for (std::uint64_t at = 0; at < 100; ++at) engine.schedule(Instant{at * 1000}, 0);
  recorder.then = [&](Event event) {
    if (event.at_ps == 5000) engine.lower_limit(Instant{8000});
    if (event.at_ps == 6000) engine.lower_limit(Instant{9000});  // only ever lowers
  };
  engine.run(never);
  CHECK(engine.now() == Instant{7000});
  CHECK(engine.next() == Instant{8000});
}

TEST_CASE("an event may schedule at its own instant and is followed by it") {
  Engine engine;
  Recorder recorder{engine};
  recorder.then = [&](Event event) {
    if (event.key < 1000) engine.schedule(Instant{event.at_ps}, event.key + 1);
  };
  engine.schedule(Instant{77}, 0);
  engine.run(never);
  CHECK(recorder.ran.size() == 1001);
  CHECK(engine.now() == Instant{77});
}

TEST_CASE("hours ahead is in order, and looking there does not disturb what is scheduled before") {
  Engine engine;
  Recorder recorder{engine};
  engine.schedule(Instant{3 * hour_ps}, 1);
  engine.schedule(Instant{hour_ps}, 2);
  CHECK(engine.next() == Instant{hour_ps});
  CHECK(engine.events_pending() == 2);
  engine.run(Instant{hour_ps - 1});
  CHECK(recorder.ran.empty());
  engine.schedule(Instant{50}, 3);
  engine.run(Instant{hour_ps + 1});
  engine.schedule(Instant{2 * hour_ps}, 4);
  engine.schedule(Instant{engine.now().ps + 100'000}, 5);  // on the wheel
  CHECK(engine.events_pending() == 3);
  engine.run(never);
  CHECK(engine.events_pending() == 0);
  CHECK(recorder.ran ==
        std::vector<Order>{{50, 3}, {hour_ps, 2}, {hour_ps + 100'000, 5}, {2 * hour_ps, 4}, {3 * hour_ps, 1}});
}

TEST_CASE("two engines in one process do not know of each other") {
  Engine one;
  Engine two;
  Recorder first{one};
  Recorder second{two};
  one.schedule(Instant{5}, 1);
  two.schedule(Instant{3}, 2);
  two.run(never);
  CHECK(first.ran.empty());
  CHECK(one.now() == Instant{0});
  one.run(never);
  CHECK(first.ran == std::vector<Order>{{5, 1}});
  CHECK(second.ran == std::vector<Order>{{3, 2}});
}

// The reference is an ordered multiset. Delays are drawn over eleven decades, so that every part of the queue and
// every passage between them is used; runs stop at random limits, inside slots and between them.
TEST_CASE("a hundred thousand random events run as an ordered multiset has them") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const RandomStream random{seed, 0, Purpose::test};
    std::uint64_t draws = 0;
    Engine engine;
    Recorder recorder{engine};
    std::multiset<Order> reference;
    std::uint64_t scheduled = 0;
    const auto schedule_one = [&] {
      const std::uint32_t bits = random.below(draws++, 40);
      const std::uint64_t at = engine.now().ps + (random.draw(draws++) & ((std::uint64_t{1} << bits) - 1));
      const std::uint64_t key = random.below(draws++, 1U << 20);
      engine.schedule(Instant{at}, key);
      reference.emplace(at, key);
      ++scheduled;
    };
    recorder.then = [&](Event event) {
      REQUIRE(!reference.empty());
      REQUIRE(*reference.begin() == Order{event.at_ps, event.key});
      reference.erase(reference.begin());
      if (scheduled < 20'000) {
        for (std::uint32_t i = random.below(draws++, 3); i > 0; --i) schedule_one();
      }
    };
    while (scheduled < 20'000) {
      for (int i = 0; i < 50; ++i) schedule_one();
      const std::uint32_t bits = random.below(draws++, 36);
      const std::uint64_t step = random.draw(draws++) & ((std::uint64_t{1} << bits) - 1);
      const Instant limit{engine.now().ps + step};
      engine.run(limit);
      REQUIRE(engine.next().ps == reference.begin()->first);
      REQUIRE(engine.next() >= limit);
    }
    engine.run(never);
    CHECK(reference.empty());
    CHECK(recorder.ran.size() == scheduled);
  }
}

}  // namespace
}  // namespace dryfly
