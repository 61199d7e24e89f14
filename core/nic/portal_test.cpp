#include "core/nic/portal.hpp"

#include <doctest/doctest.h>

using namespace dryfly;
using namespace dryfly::nic;

namespace {

constexpr Bytes eager{1000};
constexpr Bytes header{64};

struct Stand {
  EntryPool pool;
  MatchingTotals totals;
  Portal portal;
  explicit Stand(std::uint32_t entries, const EndpointSettings& settings = {}) {
    pool.open(entries);
    portal.open(settings, eager, header, pool, totals);
  }
  // The one thing that the processor is asked for.
  WorkKind work() {
    const auto work = portal.next_work();
    REQUIRE(work.has_value());
    CHECK(!portal.next_work().has_value());
    return work->kind;
  }
};

}  // namespace

TEST_CASE("the receive that is one too many for the pool disables a portal in hardware mode") {
  Stand stand(10);  // three are overflow buffers
  for (int i = 0; i < 7; ++i) CHECK(stand.portal.append() == Portal::Append::entry);
  CHECK(stand.portal.state() == Portal::State::enabled);
  CHECK(stand.portal.append() == Portal::Append::waits);
  CHECK(stand.portal.state() == Portal::State::disabled);
  CHECK(stand.work() == WorkKind::onload);
  CHECK(stand.totals.append_failed == 1);
  CHECK(!stand.portal.onloaded(0));  // nothing regained
}

TEST_CASE("an onload that frees entries lets the portal go on in hardware") {
  Stand stand(5);
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::unexpected);
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::unexpected);
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::refused);
  CHECK(stand.totals.unexpected_failed == 1);
  stand.portal.dropped();
  CHECK(stand.work() == WorkKind::onload);
  stand.portal.give_back();
  stand.portal.give_back();
  CHECK(stand.portal.onloaded(2));
  CHECK(!stand.portal.enable());  // its source has not told the drop yet
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::refused);
  stand.portal.drops_told(1);
  CHECK(stand.portal.enable());
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::unexpected);
}

TEST_CASE("a hybrid portal goes to software once and stays there") {
  Stand stand(10, {.match_mode = MatchMode::hybrid});  // three overflow and six request buffers
  CHECK(stand.portal.append() == Portal::Append::entry);
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::software);
  CHECK(stand.totals.software_by_unexpected == 1);
  CHECK(stand.portal.state() == Portal::State::to_software);
  CHECK(stand.work() == WorkKind::onload);
  CHECK(stand.portal.onloaded(0));
  CHECK(stand.portal.state() == Portal::State::software);
  CHECK(stand.pool.in_use() == 7);  // the overflow buffers are gone
  CHECK(stand.portal.append() == Portal::Append::software);
  CHECK(stand.portal.admit(true, true, Bytes{8}) == Portal::Admission::hardware);  // the receive appended before
}

TEST_CASE("a software portal uses entries for its request buffers only") {
  Stand stand(6, {.match_mode = MatchMode::software});
  CHECK(stand.pool.in_use() == 6);
  CHECK(stand.portal.append() == Portal::Append::software);
  CHECK(stand.portal.admit(false, true, Bytes{8}) == Portal::Admission::software);
  CHECK(stand.pool.in_use() == 6);
}

TEST_CASE("a request buffer is used up by payloads with their headers and has to be posted again") {
  EndpointSettings settings{.match_mode = MatchMode::software};
  settings.request_buffer = Bytes{2000};
  settings.request_buffers = 2;
  Stand stand(10, settings);
  // After 936 + 64 there is room for one message of the largest size, after the next no more.
  CHECK(stand.portal.admit(false, false, Bytes{936}) == Portal::Admission::software);
  CHECK(!stand.portal.next_work().has_value());
  CHECK(stand.portal.admit(false, false, Bytes{1}) == Portal::Admission::software);
  CHECK(stand.work() == WorkKind::replenish);
  for (int i = 0; i < 2; ++i) CHECK(stand.portal.admit(false, false, Bytes{936}) == Portal::Admission::software);
  CHECK(stand.work() == WorkKind::replenish);
  CHECK(stand.portal.admit(false, false, Bytes{1}) == Portal::Admission::refused);
  CHECK(stand.totals.request_full == 1);
  CHECK(stand.work() == WorkKind::onload);
  CHECK(stand.portal.onloaded(0));  // no entries were missing
  stand.portal.dropped();
  stand.portal.drops_told(1);
  CHECK(stand.portal.enable());
  CHECK(stand.portal.state() == Portal::State::software);
  CHECK(stand.portal.admit(false, false, Bytes{1}) == Portal::Admission::software);
}

TEST_CASE("a full event queue begins flow control, and acknowledged events make room") {
  EndpointSettings settings;
  settings.event_slots = 4;
  settings.event_batch = 3;
  Stand stand(100, settings);
  for (int i = 0; i < 4; ++i) CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::unexpected);
  const auto drain = stand.portal.next_work();
  REQUIRE(drain.has_value());
  CHECK(drain->kind == WorkKind::drain);
  CHECK(drain->count == 3);
  SUBCASE("in time") {
    stand.portal.drained(3);
    CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::unexpected);
    CHECK(stand.totals.events_full == 0);
  }
  SUBCASE("too late") {
    CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::refused);
    CHECK(stand.totals.events_full == 1);
    CHECK(stand.work() == WorkKind::onload);
    CHECK(stand.portal.onloaded(0));  // no entries were missing
  }
}

TEST_CASE("failing appends overflow the event queue, which is the end") {
  EndpointSettings settings;
  settings.event_slots = 2;
  settings.event_batch = 100;
  Stand stand(3, settings);  // the overflow buffers
  CHECK(stand.portal.append() == Portal::Append::waits);
  CHECK(stand.work() == WorkKind::onload);
  CHECK(stand.portal.append() == Portal::Append::waits);
  CHECK(!stand.portal.next_work().has_value());
  CHECK(stand.portal.append() == Portal::Append::waits);
  CHECK(stand.work() == WorkKind::fatal_events);
}

TEST_CASE("hybrid mode can turn to software before anything fails") {
  EndpointSettings settings{.match_mode = MatchMode::hybrid};
  settings.overflow_buffers = settings.request_buffers = 1;
  settings.receive_size = 2;
  SUBCASE("with more posted receives than the end-point's size") {
    settings.preempt_on_posted = true;
    Stand stand(100, settings);
    stand.portal.posted(2);
    CHECK(stand.portal.state() == Portal::State::enabled);
    stand.portal.posted(3);
    CHECK(stand.portal.state() == Portal::State::to_software);
    CHECK(stand.totals.software_by_choice == 1);
  }
  SUBCASE("with more unexpected messages than that") {
    settings.preempt_on_unexpected = true;
    Stand stand(100, settings);
    stand.portal.waiting(3);
    CHECK(stand.portal.state() == Portal::State::to_software);
  }
  SUBCASE("with half of the pool in use, looked at with every 64th append") {
    settings.preempt_on_pool = true;
    Stand stand(120, settings);
    for (int i = 0; i < 63; ++i) CHECK(stand.portal.append() == Portal::Append::entry);
    CHECK(stand.portal.append() == Portal::Append::software);
  }
}

TEST_CASE("a hybrid portal that lacks entries in the middle of flow control is enabled as software's") {
  EndpointSettings settings{.match_mode = MatchMode::hybrid};
  settings.event_slots = 1;
  Stand stand(10, settings);  // nine are buffers
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::unexpected);
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::refused);
  stand.portal.dropped();
  CHECK(stand.portal.append() == Portal::Append::software);
  CHECK(stand.totals.software_by_append == 1);
  CHECK(stand.work() == WorkKind::onload);
  stand.portal.give_back();
  CHECK(stand.portal.onloaded(1));
  stand.portal.drops_told(1);
  CHECK(stand.portal.enable());
  CHECK(stand.portal.state() == Portal::State::software);
}

TEST_CASE("a software portal takes no list entries for receives while it is in flow control either") {
  EndpointSettings settings{.match_mode = MatchMode::software};
  settings.event_slots = 0;
  Stand stand(10, settings);
  CHECK(stand.portal.admit(false, false, Bytes{8}) == Portal::Admission::refused);
  CHECK(stand.portal.append() == Portal::Append::software);
  CHECK(stand.pool.in_use() == 6);
}
