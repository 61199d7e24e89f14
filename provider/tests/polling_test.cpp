// When an empty poll may let virtual time pass.
#include "provider/news.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;
using wire::EventKind;

namespace {

constexpr std::uint64_t later_ps = 1'000'000;

std::uint64_t elapsed(const Rig& rig, std::uint64_t since) { return rig.run.now_ps() - since; }

}  // namespace

TEST_CASE("an empty poll costs one poll and goes on to the next event") {
  Rig rig;
  REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  rig.run.add(rig.answer(EventKind::sent), later_ps);
  const std::uint64_t start = rig.run.now_ps();
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(rig.queue, &entry, 1) == 1);
  // The poll lies within the wait.
  CHECK(elapsed(rig, start) == later_ps + costs.sent_ps);
}

TEST_CASE("a read gives one completion and costs one, however many are there and asked for") {
  Rig rig;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
    rig.run.add(rig.answer(EventKind::sent));
  }
  const std::uint64_t start = rig.run.now_ps();
  fi_cq_tagged_entry entries[8] = {};
  for (std::uint64_t taken = 1; taken <= 3; ++taken) {
    CHECK(fi_cq_read(rig.queue, entries, 8) == 1);
    CHECK(elapsed(rig, start) == taken * costs.sent_ps);
  }
  CHECK(fi_cq_read(rig.queue, entries, 8) == -FI_EAGAIN);
}

TEST_CASE("a counter is read only when all that is visible has come") {
  Rig rig;
  CHECK(rig.run.settle_calls == 0);
  fi_cntr_read(rig.memory_counter);
  CHECK(rig.run.settle_calls == 1);
  fi_cntr_readerr(rig.memory_counter);
  CHECK(rig.run.settle_calls == 2);
}

TEST_CASE("what a look at a queue finds behind a counter's event does not depend on what has come to the ring") {
  for (const std::size_t under_way : {0U, 1U, 2U}) {
    CAPTURE(under_way);
    Rig rig;
    REQUIRE(fi_inject_write(rig.endpoint, "a", 1, 1, 0, 0) == 0);
    rig.run.add(rig.answer(EventKind::rma_done));
    REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
    rig.run.add(rig.answer(EventKind::sent));
    rig.run.under_way = under_way;
    const std::uint64_t start = rig.run.now_ps();
    fi_cq_tagged_entry entry{};
    CHECK(fi_cq_read(rig.queue, &entry, 1) == 1);
    CHECK(elapsed(rig, start) == costs.sent_ps);
    CHECK(fi_cntr_read(rig.memory_counter) == 1);
  }
}

TEST_CASE("a poll of a queue does not wait when a counter has news that the program has not read") {
  Rig rig;
  REQUIRE(fi_inject_write(rig.endpoint, "a", 1, 1, 0, 0) == 0);
  rig.run.add(rig.answer(EventKind::rma_done));
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
  CHECK(rig.run.idle_calls == 0);
  CHECK(fi_cntr_read(rig.memory_counter) == 1);
  CHECK(rig.run.idle_calls == 0);
}

TEST_CASE("news that nobody reads grow old after one look per queue and counter") {
  Rig rig;
  REQUIRE(fi_inject_write(rig.endpoint, "a", 1, 1, 0, 0) == 0);
  rig.run.add(rig.answer(EventKind::rma_done));
  fi_cq_tagged_entry entry{};
  // One queue and one counter: the delivering poll, one that still holds back, and then time passes.
  CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
  CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
  CHECK(rig.run.idle_calls == 0);
  CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
  CHECK(rig.run.idle_calls == 1);
}

TEST_CASE("a program that takes one of many from a queue in each round over its queues is not made to wait") {
  provider::News news;
  provider::Outlet empty{}, full{};
  news.add(empty);
  news.add(full);
  for (int i = 0; i < 5; ++i) news.reported(full);
  for (std::uint64_t left = 5; left-- > 0;) {
    CHECK_FALSE(news.may_wait());  // in a look at the empty one
    news.seen(full, left);
  }
  CHECK(news.may_wait());
}

TEST_CASE("a counter with nothing under way never waits, however often it is read") {
  Rig rig;
  for (int i = 0; i < 5; ++i) CHECK(fi_cntr_read(rig.memory_counter) == 0);
  CHECK(rig.run.idle_calls == 0);
}

TEST_CASE("reading a counter again while an operation is under way goes on to its completion") {
  Rig rig;
  REQUIRE(fi_inject_write(rig.endpoint, "a", 1, 1, 0, 0) == 0);
  rig.run.add(rig.answer(EventKind::rma_done), later_ps);
  const std::uint64_t start = rig.run.now_ps();
  CHECK(fi_cntr_read(rig.memory_counter) == 1);
  CHECK(elapsed(rig, start) == later_ps);
}

TEST_CASE("fi_cq_sread waits in virtual time, to the event or to its time-out") {
  Rig rig;
  fi_cq_tagged_entry entry{};
  const std::uint64_t start = rig.run.now_ps();
  CHECK(fi_cq_sread(rig.queue, &entry, 1, nullptr, 3) == -FI_EAGAIN);
  CHECK(elapsed(rig, start) == 3'000'000'000);  // 3 ms in ps
  REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  rig.run.add(rig.answer(EventKind::sent), later_ps);
  CHECK(fi_cq_sread(rig.queue, &entry, 1, nullptr, -1) == 1);
}

TEST_CASE("fi_cntr_wait ends at the threshold, at an error or at its time-out") {
  Rig rig;
  CHECK(fi_cntr_wait(rig.memory_counter, 1, 1) == -FI_ETIMEDOUT);
  REQUIRE(fi_inject_write(rig.endpoint, "a", 1, 1, 0, 0) == 0);
  rig.run.add(rig.answer(EventKind::rma_done), later_ps);
  CHECK(fi_cntr_wait(rig.memory_counter, 1, -1) == 0);
  REQUIRE(fi_inject_write(rig.endpoint, "a", 1, 1, 0, 0) == 0);
  auto failed = rig.answer(EventKind::rma_done);
  failed.error = FI_EIO;
  rig.run.add(failed, later_ps);
  CHECK(fi_cntr_wait(rig.memory_counter, 2, -1) == -FI_EAVAIL);
  fi_cq_err_entry error{};
  CHECK(fi_cq_readerr(rig.queue, &error, 0) == 1);
}

TEST_CASE("a completion queue loses nothing when nobody reads it") {
  Rig rig;
  constexpr int sends = 1000;  // more than the first ring holds
  for (int i = 0; i < sends; ++i) {
    REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, reinterpret_cast<void*>(std::uintptr_t(i) + 1)) == 0);
    rig.run.add(rig.answer(EventKind::sent));
  }
  for (int i = 0; i < sends; ++i) {
    fi_cq_tagged_entry entry{};
    REQUIRE(fi_cq_read(rig.queue, &entry, 1) == 1);
    REQUIRE(entry.op_context == reinterpret_cast<void*>(std::uintptr_t(i) + 1));
  }
}
