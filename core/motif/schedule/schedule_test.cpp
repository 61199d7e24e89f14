#include "core/motif/schedule/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/selection.hpp"
#include "core/unit/random.hpp"
#include "testing/motif_stage.hpp"

namespace dryfly::motif {
namespace {

using List = std::vector<Instruction>;

Instruction call(Verb verb, std::uint32_t line, std::uint32_t peer = 0, std::uint64_t size = 0, std::uint32_t tag = 0,
                 std::uint32_t slot = 0) {
  return {.word = static_cast<std::uint32_t>(verb) | line << 8, .slot = slot, .peer = peer, .tag = tag, .size = size};
}

void add(std::string& bytes, std::uint32_t number) { bytes.append(reinterpret_cast<const char*>(&number), 4); }

// Each rank's list, counted from 0; one group.
std::string file_of(const std::vector<std::uint32_t>& list_of, const std::vector<List>& lists,
                    const std::vector<std::uint32_t>& group = {}) {
  std::string bytes = "dfsched1";
  const std::string text("p.py\0one\0", 9);
  for (const std::size_t number :
       {list_of.size(), lists.size(), group.empty() ? std::size_t{0} : std::size_t{1}, std::size_t{1}, text.size()}) {
    add(bytes, static_cast<std::uint32_t>(number));
  }
  bytes += text;
  if (!group.empty()) add(bytes, static_cast<std::uint32_t>(group.size()));
  for (const std::uint32_t member : group) add(bytes, member);
  for (const std::uint32_t list : list_of) add(bytes, list);
  for (const List& list : lists) {
    add(bytes, static_cast<std::uint32_t>(list.size()));
    add(bytes, static_cast<std::uint32_t>(std::min<std::size_t>(list.size(), 2)));
  }
  for (const List& list : lists) {
    bytes.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(Instruction));
  }
  return bytes;
}

std::string complaint(const std::string& bytes) {
  try {
    check_schedule(parse_schedule("s", bytes));
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

struct Run {
  std::uint64_t end_ps = 0;
  JobTotals totals;
  std::vector<std::pair<std::string, Duration>> phases;
};

Run run(const std::string& bytes, std::uint32_t ranks, const Selection* library = nullptr) {
  const Schedule schedule = parse_schedule("s", bytes);
  check_schedule(schedule);
  MotifStage stage(Way::endpoints, ranks);
  Job& job = stage.job();
  play_all(job, schedule, library);
  return {job.end().ps, job.totals(), job.phases().means(schedule.ranks())};
}

// A payload of terabytes is carried piece by piece, which takes its time.
bool is_short(const Schedule& schedule) {
  return std::all_of(schedule.instructions.begin(), schedule.instructions.end(),
                     [](const Instruction& one) { return one.verb() == Verb::compute || one.size < (1U << 24); });
}

// False: refused, because the ranks wait for each other.
bool ends(const std::string& bytes) {
  try {
    static_cast<void>(run(bytes, 4));
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

Run run(std::uint32_t ranks, const std::function<Task(Rank&)>& program) {
  MotifStage stage(Way::endpoints, ranks);
  Job& job = stage.job();
  job.run(program);
  return {job.end().ps, job.totals(), {}};
}

const List to_the_right{call(Verb::irecv, 1, 3, 0, 5, 0), call(Verb::isend, 2, 1, 4096, 5, 1),
                        call(Verb::wait, 3, 1, 0, 0, 0), call(Verb::compute, 4, 0, 1000)};

Task ring(Rank& me) {
  const Pending received = me.irecv((me.id() + 3) % 4, 5);
  const Pending sent = me.isend((me.id() + 1) % 4, 5, Bytes{4096});
  co_await me.wait(received, sent);
  co_await me.compute(Duration{1000});
}

TEST_CASE("One list for all ranks is run by each from where it is, as the same calls in C++ are") {
  const Run played = run(file_of({0, 0, 0, 0}, {to_the_right}), 4);
  const Run written = run(4, ring);
  CHECK(played.end_ps == written.end_ps);
  CHECK(played.totals.messages == 4);
  CHECK(played.totals.bytes == 4 * 4096);
}

TEST_CASE("Phases are counted by name") {
  const List list{call(Verb::compute, 1, 0, 500), call(Verb::phase, 2, 1), call(Verb::compute, 3, 0, 1000)};
  const Run played = run(file_of({0, 0}, {list}), 2);
  REQUIRE(played.phases.size() == 1);
  CHECK(played.phases[0].first == "one");
  CHECK(played.phases[0].second == Duration{1000});
}

TEST_CASE("A place without a rank has no part in the phases") {
  const List list{call(Verb::phase, 1, 1), call(Verb::compute, 2, 0, 1000)};
  const Run played = run(file_of({0, 0}, {list}), 8);
  REQUIRE(played.phases.size() == 1);
  CHECK(played.phases[0].second == Duration{1000});
}

TEST_CASE("Every collective sends as many messages and bytes as its algorithm has") {
  constexpr std::uint64_t size = 1000;
  constexpr std::uint32_t n = 6;
  struct Expected {
    std::uint64_t messages;
    std::uint64_t bytes;
  };
  // Trees have n - 1 messages. Recursive doubling of 6: 2 ranks fold in and out, 4 exchange in 2 rounds. In parts each
  // branch below root 2's brings all its ranks' parts: of places 0 to 5 the branches at 1, 2, 3, 4, 5 have 1, 2, 1, 2
  // and 1 ranks.
  const std::map<Verb, Expected> all{
      {Verb::barrier, {n * 3, 0}},
      {Verb::fence, {n * 3, 0}},
      {Verb::bcast, {n - 1, (n - 1) * size}},
      {Verb::reduce, {n - 1, (n - 1) * size}},
      {Verb::allreduce, {2 * 2 + 4 * 2, 12 * size}},
      {Verb::alltoall, {n * (n - 1), n * (n - 1) * size}},
      {Verb::allgather, {n * (n - 1), n * (n - 1) * size}},
      {Verb::reduce_scatter, {n * (n - 1), n * (n - 1) * size}},
      {Verb::gather, {n - 1, 7 * size}},
      {Verb::scatter, {n - 1, 7 * size}},
  };
  REQUIRE(all.size() == static_cast<std::size_t>(Verb::count) - static_cast<std::size_t>(Verb::barrier));
  for (const auto& [verb, expected] : all) {
    CAPTURE(static_cast<int>(verb));
    const bool empty = verb == Verb::barrier || verb == Verb::fence;
    const std::uint32_t root = expected.messages == n - 1 ? 2 : 0;
    const Run played = run(file_of({0, 0, 0, 0, 0, 0}, {{call(verb, 1, root, empty ? 0 : size)}}), n);
    CHECK(played.totals.messages == expected.messages);
    CHECK(played.totals.bytes == expected.bytes);
  }
}

TEST_CASE("A library chooses the algorithms of the collectives, and not those of what is none of its own") {
  const Selection mpich = Selection::of_library("mpich");
  const std::string gather = file_of({0, 0, 0, 0, 0, 0, 0, 0}, {{call(Verb::allgather, 1, 0, 8)}});
  // Around a ring each of 8 ranks sends 7 messages; doubling what it has, 3 of 8, 16 and 32 bytes.
  CHECK(run(gather, 8).totals.messages == 8 * 7);
  CHECK(run(gather, 8, &mpich).totals.messages == 8 * 3);
  CHECK(run(gather, 8, &mpich).totals.bytes == 8 * (8 + 16 + 32));
  const std::string fence = file_of({0, 0, 0, 0, 0, 0}, {{call(Verb::fence, 1)}});
  CHECK(run(fence, 6, &mpich).totals.messages == run(fence, 6).totals.messages);
}

TEST_CASE("A collective of a group is the group's only") {
  Instruction barrier = call(Verb::barrier, 1);
  barrier.slot = 1;
  CHECK(run(file_of({0, 1, 0, 1}, {{barrier}, {}}, {0, 2}), 4).totals.messages == 2);
  CHECK(complaint(file_of({0, 0, 0, 1}, {{barrier}, {}}, {0, 2})) ==
        "p.py, line 1, rank 1: this call is over a group that the rank is not in");
  CHECK(complaint(file_of({0, 1, 1, 1}, {{barrier}, {}}, {0, 2})) ==
        "p.py, line 1, rank 0: of the 2 ranks of this group only 1 call its collectives");
}

TEST_CASE("Calls that cannot be are refused by line and rank") {
  const auto of = [](const Instruction& one) { return complaint(file_of({1, 1, 0}, {{one}, {}})); };
  CHECK(of(call(Verb::send, 9, 3)) == "p.py, line 9, rank 2: this call names a rank that there is not");
  CHECK(of(call(Verb::isend, 9, 1, 8, 0, 1)) == "p.py, line 9, rank 2: this call has a request that there is not");
  CHECK(of(call(Verb::wait, 9, 7)) == "p.py, line 9, rank 2: this call waits for a request that there is not");
  CHECK(of(call(Verb::compute, 9, 0, 1ULL << 60)) == "p.py, line 9, rank 2: this call computes for longer than a day");
  CHECK(of(call(Verb::bcast, 9, 3)) == "p.py, line 9, rank 2: this call has a root that is not in its group");
  CHECK(of(call(Verb::phase, 9, 2)) == "p.py, line 9, rank 2: this call enters a phase that there is not");
  CHECK(of(call(static_cast<Verb>(99), 9)) == "p.py, line 9, rank 2: this call has a verb that there is not");
  CHECK(of(call(Verb::send, 9, 1, 8)).find("p.py, line 9, rank 2: the send to rank 0 has no receive") == 0);
  CHECK(of(call(Verb::recv, 9, any_rank)).find("p.py, line 9, rank 2: the receive from any rank has no send") == 0);
  CHECK(complaint(file_of({0, 1}, {{call(Verb::barrier, 4)}, {call(Verb::allreduce, 6, 0, 8)}})) ==
        "p.py, line 6, rank 1: the collectives of this rank, of which this is the last, are not those of rank 0");
}

TEST_CASE("Ranks that wait for each other are named by line") {
  const List both{call(Verb::recv, 7, 1), call(Verb::send, 8, 1, 8)};
  CHECK_THROWS_WITH_AS(static_cast<void>(run(file_of({0, 0}, {both}), 2)),
                       "p.py, line 7, rank 0: the ranks wait for each other for ever, this one in this call",
                       SpecError);
}

TEST_CASE("A file that is cut, longer, or changed anywhere is refused or runs without a lost message") {
  const std::string whole = file_of({0, 0, 0, 0}, {to_the_right, {call(Verb::barrier, 1)}}, {1, 3});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(complaint(whole.substr(0, length)).find("file = `s`") == 0);
  }
  CHECK(complaint(whole + "x").find("there is more than its end") != std::string::npos);
  const RandomStream draws(3, 0, Purpose::workload);
  std::uint64_t drawn = 0;
  int accepted = 0;
  int played = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    std::string bytes = whole;
    const std::size_t at = draws.within(drawn++, bytes.size());
    bytes[at] = static_cast<char>(draws.within(drawn++, 256));
    if (complaint(bytes).empty()) {
      ++accepted;
      const Schedule schedule = parse_schedule("s", bytes);
      if (schedule.ranks() == 4 && is_short(schedule)) played += ends(bytes) ? 1 : 0;
    }
  }
  CHECK(accepted > 100);
  CHECK(played > 100);
}

}  // namespace
}  // namespace dryfly::motif
