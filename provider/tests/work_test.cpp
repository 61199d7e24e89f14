// Work that the NIC asks for is done at a poll, in its turn among the completions.
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;
using wire::CommandKind;
using wire::EventKind;

namespace {

wire::Event work(std::uint64_t kind, std::uint64_t count = 0) {
  wire::Event event{};
  event.kind = EventKind::work;
  event.work_kind = kind;
  event.work_item = 77;
  event.work_generation = 5;
  event.work_count = count;
  return event;
}

constexpr std::uint64_t onload = 0;
constexpr std::uint64_t drain = 1;

}  // namespace

TEST_CASE("work is done when a read comes to it, costs a match for each message, and is no completion") {
  Rig rig;
  REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  rig.run.add(rig.answer(EventKind::sent));
  rig.run.add(work(onload, 3));
  rig.run.pushed.clear();
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(rig.queue, &entry, 1) == 1);
  CHECK(rig.run.pushed.empty());
  const std::uint64_t start = rig.run.now_ps();
  CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
  CHECK(rig.run.now_ps() == start + 3 * costs.match_ps);
  REQUIRE(rig.run.pushed.size() == 1);
  CHECK(rig.last().kind == CommandKind::work_done);
  CHECK(rig.last().work_kind == onload);
  CHECK(rig.last().work_item == 77);
  CHECK(rig.last().work_generation == 5);
  CHECK(rig.last().work_count == 3);
}

TEST_CASE("acknowledging events costs nothing of its own") {
  Rig rig;
  rig.run.add(work(drain, 32));
  const std::uint64_t start = rig.run.now_ps();
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
  CHECK(rig.run.now_ps() == start);
}

TEST_CASE("a message that software has matched costs the match as well when it is taken") {
  Rig rig;
  REQUIRE(fi_trecv(rig.endpoint, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr) == 0);
  wire::Event event = rig.answer(EventKind::received);
  event.flags |= wire::event_flag::matched_in_software;
  rig.run.add(event);
  const std::uint64_t start = rig.run.now_ps();
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(rig.queue, &entry, 1) == 1);
  CHECK(rig.run.now_ps() == start + costs.received_ps + costs.match_ps);
}
