#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "core/motif/goal/player.hpp"
#include "core/motif/goal/schedules.hpp"
#include "core/unit/random.hpp"
#include "testing/motif_stage.hpp"

namespace dryfly::motif::goal {
namespace {

constexpr const char* ring =
    "num_ranks 3\n"
    "rank 0 {\n l1: calc 100\n l2: send 8b to 1 tag 5 cpu 0 nic 0\n l3: recv 8b from 2 tag 5\n l2 requires l1\n}\n"
    "rank 1 {\n l1: recv 8b from 0 tag 5 cpu 1\n l2: send 8b to 2 tag 5\n l2 requires l1\n}\n"
    "/* the\n last one */\n"
    "rank 2 { l1: recv 8b from -1 tag -1; l2: send 8b to 0 tag 5 // home\n l2 requires l1 }\n";

// As the user sees it; empty: the file is accepted.
std::string complaint(const std::string& text) {
  try {
    const Schedules schedules = parse("f", text);
    check("f", schedules);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

struct Run {
  std::uint64_t end_ps = 0;
  std::uint64_t first_end_ps = 0;  // of rank 0
  JobTotals totals;
  std::string complaint;
};

Run run(const std::string& text, std::uint32_t nodes = 4) {
  MotifStage stage(Way::endpoints, nodes);
  Job& job = stage.job();
  Run out;
  Schedules schedules = parse("f", text);
  check("f", schedules);
  Player player(job, schedules, 1000);
  try {
    player.run("f");
  } catch (const SpecError& error) {
    out.complaint = error.what();
  }
  out.end_ps = player.end().ps;
  out.first_end_ps = job.rank(0).now().ps;
  out.totals = job.totals();
  return out;
}

std::string one_rank(const std::string& statements) { return "num_ranks 1\nrank 0 {\n" + statements + "}\n"; }

TEST_CASE("All forms of the text are read: labels, options, comments, semicolons and wildcards") {
  const Schedules schedules = parse("f", ring);
  REQUIRE(schedules.count() == 3);
  REQUIRE(schedules.steps.size() == 7 + 1);
  CHECK(schedules.steps[0].size == 100);
  CHECK(schedules.steps[1].peer == 1);
  CHECK(schedules.steps[1].tag == 5);
  CHECK(schedules.steps[1].waiting == 1);
  CHECK(schedules.steps[3].stream == 1);
  CHECK(schedules.steps[5].peer == any_rank);
  CHECK(schedules.steps[5].tag == any_tag);
  CHECK(schedules.steps[5].line == 15);
  CHECK(complaint(ring).empty());
}

TEST_CASE("A rank may be missing, and ranks may come in any order") {
  CHECK(complaint("num_ranks 3\nrank 2 {\nrecv 1b from 0\n}\nrank 0 {\nsend 1b to 2\n}\n").empty());
}

TEST_CASE("What is no schedule is refused by line and rank") {
  const std::vector<std::array<std::string, 2>> cases{
      {"", "f: num_ranks is missing"},
      {"num_ranks 0\n", "f, line 1: num_ranks = 0: accepted is a whole number from 1"},
      {"num_ranks 99999999999\n", "num_ranks = `99999999999`: accepted is a whole number from 0 to"},
      {"rank 0 {\n}\n", "f, line 1: a rank before num_ranks"},
      {"num_ranks 2\nrank 2 {\n}\n", "f, line 2: rank = 2: accepted is 0 to 1, from num_ranks"},
      {"num_ranks 2\nrank 1 {\n}\nrank 1 {\n}\n", "f, line 4, rank 1: the rank is given twice, first in line 2"},
      {"num_ranks 2\nrank 0 {\n send 8b to 2\n}\n", "f, line 3, rank 0: send to 2: accepted is 0 to 1, from num_ranks"},
      {"num_ranks 2\nrank 0 {\n recv 8b from 7\n}\n", "f, line 3, rank 0: recv from 7: accepted is 0 to 1"},
      {one_rank(" send 8 to 0\n"), "f, line 3, rank 0: `to`: accepted is `b`"},
      {one_rank(" send 8b to -1\n"), "only a receive may have -1"},
      {one_rank(" send 8b to 0 tag -1\n"), "only a receive may have -1"},
      {one_rank(" calc -3\n"), "f, line 3, rank 0: calc = `-`: accepted is a whole number"},
      {one_rank(" calc 3 tag 4\n"), "`tag`: accepted is the end of the line"},
      {one_rank(" calc 3 cpu 256\n"), "cpu = `256`: accepted is a whole number from 0 to 255"},
      {one_rank(" a: calc 3\n a: calc 4\n"), "f, line 4, rank 0: the label a is given twice"},
      {one_rank(" a: calc 3\n a requires b\n"), "f, line 4, rank 0: the label b is nowhere in this rank"},
      {one_rank(" a: b\n"), "`b`: accepted is calc, send or recv"},
      {one_rank(" a waits b\n"), "`waits`: accepted is `:`, requires or irequires"},
      {"num_ranks 1\nrank 0 {\n calc 3\n", "the file ends: accepted is `}`"},
      {"num_ranks 1\nloop\n", "`loop`: accepted is num_ranks or rank"},
  };
  for (const auto& [text, sentence] : cases) {
    CAPTURE(text);
    const std::string said = complaint(text);
    CHECK_MESSAGE(said.find(sentence) != std::string::npos, said);
  }
}

TEST_CASE("A circle is refused, and the step that is named is on it") {
  // b waits for itself over c; d waits for b and is on no circle, nor is a.
  const std::string text = one_rank(
      " a: calc 1\n d: calc 1\n b: calc 1\n c: calc 1\n b requires c\n c irequires b\n"
      " d requires b\n b requires a\n");
  CHECK(complaint(text) == "f, line 5, rank 0: this step waits, over others, for itself");
  CHECK(complaint(one_rank(" a: calc 1\n a requires a\n")).find("line 3, rank 0") != std::string::npos);
}

TEST_CASE("A message without a receive and a receive without a message are refused") {
  const std::string head = "num_ranks 2\nrank 0 {\n send 8b to 1 tag 5\n send 8b to 1 tag 5\n}\n";
  CHECK(complaint(head + "rank 1 {\n recv 8b from 0 tag 5\n}\n") ==
        "f, line 4, rank 0: the send to rank 1 with tag 5 has no receive: rank 1 is sent 2 messages and receives 1, "
        "with tag 5 by rank 0");
  CHECK(complaint(head + "rank 1 {\n recv 8b from 0 tag 5\n recv 8b from 0 tag 5\n recv 8b from 0 tag 5\n}\n")
            .find("f, line 9, rank 1: the receive from rank 0 with tag 5 has no send") == 0);
  CHECK(complaint(head + "rank 1 {\n recv 8b from 0 tag 5\n recv 8b from 0 tag 6\n}\n").find("f, line 4, rank 0") == 0);
  // Where a receive takes anything, only how many there are is known.
  CHECK(complaint(head + "rank 1 {\n recv 8b from -1 tag 5\n recv 8b from 0 tag 5\n}\n").empty());
  CHECK(complaint(head + "rank 1 {\n recv 8b from -1 tag -1\n}\n").find("rank 1 is sent 2 messages and receives 1") !=
        std::string::npos);
}

TEST_CASE("Schedules that wait for each other are found out when they are run") {
  const std::string text =
      "num_ranks 2\nrank 0 {\n a: recv 8b from 1\n b: send 8b to 1\n b requires a\n}\n"
      "rank 1 {\n a: recv 8b from 0\n b: send 8b to 0\n b requires a\n}\n";
  CHECK(run(text).complaint.find("f, line 3, rank 0: the schedules wait for each other for ever") == 0);
  // Receives that take each other's message.
  const std::string other =
      "num_ranks 2\nrank 0 {\n send 8b to 1 tag 1\n send 8b to 1 tag 2\n}\n"
      "rank 1 {\n a: recv 8b from -1 tag -1\n b: recv 8b from 0 tag 1\n b requires a\n}\n";
  CHECK(run(other).complaint.find("f, line 8, rank 1") == 0);
}

TEST_CASE("A stream does one thing at a time, streams are independent, and irequires asks for the begin only") {
  CHECK(run(one_rank("calc 100\ncalc 200\n")).end_ps == 300'000);
  CHECK(run(one_rank("calc 100\ncalc 200 cpu 1\n")).end_ps == 200'000);
  CHECK(run(one_rank("a: calc 100\nb: calc 200 cpu 1\nb requires a\n")).end_ps == 300'000);
  CHECK(run(one_rank("a: calc 100\nb: calc 200 cpu 1\nb irequires a\n")).end_ps == 200'000);
  // c may begin at 100 ns, when d, which is before it in its stream's line, has not been released yet.
  CHECK(run(one_rank("a: calc 100\nb: calc 300\nd: calc 50 cpu 1\nc: calc 250 cpu 1\nb requires a\nd requires b\n"
                     "c requires a\n"))
            .end_ps == 450'000);
}

Task ping_pong(Rank& me, std::uint64_t bytes) {
  for (int turn = 0; turn < 3; ++turn) {
    if (me.id() == 0) co_await me.send(1, 0, Bytes{bytes});
    if (me.id() <= 1) co_await me.recv(1 - me.id(), 0);
    if (me.id() == 1) co_await me.send(0, 0, Bytes{bytes});
  }
}

std::string ping_pong_text(std::uint64_t bytes) {
  const std::string size = std::to_string(bytes) + "b";
  std::string text = "num_ranks 2\n";
  for (int rank = 0; rank < 2; ++rank) {
    text += "rank " + std::to_string(rank) + " {\n";
    for (int step = 0; step < 6; ++step) {
      const std::string peer = std::to_string(1 - rank);
      text += "l" + std::to_string(step) + ": " +
              (step % 2 == rank ? "send " + size + " to " + peer : "recv " + size + " from " + peer) + "\n";
      if (step > 0) text += "l" + std::to_string(step) + " requires l" + std::to_string(step - 1) + "\n";
    }
    text += "}\n";
  }
  return text;
}

// Rank 0 receives last.
TEST_CASE("A chain of steps takes as long as the same calls of a coroutine") {
  for (const std::uint64_t bytes : {8, 4096, 100'000}) {
    CAPTURE(bytes);
    MotifStage stage(Way::endpoints, 4);
    const Job& job = stage.run([&](Rank& me) { return ping_pong(me, bytes); });
    const Run played = run(ping_pong_text(bytes));
    CHECK(played.complaint.empty());
    CHECK(played.first_end_ps == job.rank(0).now().ps);
    CHECK(played.totals.messages == job.totals().messages);
  }
}

// Cuts, doubles, and changes pieces of a text.
std::string mangled(std::string text, const RandomStream& draws, std::uint64_t& drawn) {
  static constexpr std::array<const char*, 16> pieces{"{",        "}",
                                                      ";",        "\n",
                                                      ":",        "-1",
                                                      "tag ",     "requires l1",
                                                      "/*",       "*/",
                                                      "rank 1 {", "send 8b to 1\n",
                                                      "0",        "99999999999999999999",
                                                      "\xff",     "l1: recv 8b from 0\n"};
  const std::uint64_t changes = 1 + draws.within(drawn++, 4);
  for (std::uint64_t change = 0; change < changes && !text.empty(); ++change) {
    const std::size_t at = draws.within(drawn++, text.size());
    const std::size_t length = 1 + draws.within(drawn++, 12);
    switch (draws.within(drawn++, 3)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, pieces[draws.within(drawn++, pieces.size())]);
        break;
      default:
        text.insert(at, text.substr(draws.within(drawn++, text.size()), length));
    }
  }
  return text;
}

TEST_CASE("Whatever the text is, it is refused with a sentence or all of its messages arrive") {
  const RandomStream draws(7, 0, Purpose::workload);
  std::uint64_t drawn = 0;
  int accepted = 0;
  int refused = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    const std::string text = mangled(ring, draws, drawn);
    CAPTURE(text);
    if (!complaint(text).empty()) {
      ++refused;
      continue;
    }
    ++accepted;
    const Schedules schedules = parse("f", text);
    if (schedules.count() > 4) continue;
    std::uint64_t sends = 0;
    for (const Step& step : schedules.steps) sends += step.kind == StepKind::send ? 1 : 0;
    const Run played = run(text);
    if (played.complaint.empty()) CHECK(played.totals.messages == sends);
  }
  CHECK(accepted > 300);
  CHECK(refused > 1000);
}

}  // namespace
}  // namespace dryfly::motif::goal
