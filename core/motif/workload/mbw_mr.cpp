// osu_mbw_mr: each rank of the first half sends windows of messages to its partner in the second half, rank i to
// i + P / 2, and waits for an answer of four bytes behind each window. All pairs at once.
//
// Parameters, in base units: bytes, of a message; window, messages of one; iterations, windows.
//
// The time is that of an iteration, from when all begin together to the last sender's last answer; rates are those of
// all pairs. Left out: the windows that the program does not count, before.
//
// Source of the model: the OSU micro-benchmarks' osu_mbw_mr.c, as programs/benchmark/mbw_mr.c has it.
#include <algorithm>
#include <string>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

enum Tag : std::uint32_t { of_window = 1, of_answer = 2 };

struct Windows {
  Bytes size;
  std::uint64_t window = 0;
  std::uint64_t iterations = 0;
};

constexpr Bytes answer_size{4};
// Of a window of all pairs: some 10 GB of records.
constexpr std::uint64_t most_under_way = std::uint64_t{1} << 27U;

Task send(Rank& me, const Windows& windows, Instant& begun, Instant& ended) {
  const std::uint32_t partner = me.id() + me.count() / 2;
  co_await me.gather();
  begun = me.now();
  for (std::uint64_t turn = 0; turn < windows.iterations; ++turn) {
    for (std::uint64_t message = 0; message < windows.window; ++message) me.isend(partner, of_window, windows.size);
    co_await me.wait_all();
    co_await me.recv(partner, of_answer);
  }
  ended = std::max(ended, me.now());
}

Task receive(Rank& me, const Windows& windows) {
  const std::uint32_t partner = me.id() - me.count() / 2;
  co_await me.gather();
  for (std::uint64_t turn = 0; turn < windows.iterations; ++turn) {
    for (std::uint64_t message = 0; message < windows.window; ++message) me.irecv(partner, of_window);
    co_await me.wait_all();
    co_await me.send(partner, of_answer, answer_size);
  }
}

}  // namespace

Answer predict_mbw_mr(Stage& stage, Parameters& parameters) {
  const Windows windows{.size = {parameters.number_or("bytes", 1U << 20U, 0, std::uint64_t{1} << 40)},
                        .window = parameters.number_or("window", 64, 1, 1'000'000),
                        .iterations = parameters.number_or("iterations", 2, 1, 1'000'000)};
  parameters.check_all_used();
  if (stage.ranks() % 2 != 0) {
    throw SpecError("ranks = " + std::to_string(stage.ranks()) + ": accepted is an even number, in pairs");
  }
  if (windows.window * (stage.ranks() / 2) > most_under_way) {
    throw SpecError("window = " + std::to_string(windows.window) + ": accepted are up to " +
                    std::to_string(most_under_way / (stage.ranks() / 2)) + " messages of each of " +
                    std::to_string(stage.ranks() / 2) + " pairs, all of which are under way at once");
  }
  Answer answer;
  Instant begun;
  Instant ended;
  stage.run([&](Rank& me) { return me.id() < me.count() / 2 ? send(me, windows, begun, ended) : receive(me, windows); },
            answer, {});
  answer.time = Duration{(ended - begun).ps / windows.iterations};
  const double messages = static_cast<double>(stage.ranks() / 2) * static_cast<double>(windows.window);
  const double seconds = static_cast<double>(answer.time.ps) * 1e-12;
  answer.figures.emplace_back("bytes_per_s", messages * static_cast<double>(windows.size.count) / seconds);
  answer.figures.emplace_back("messages_per_s", messages / seconds);
  return answer;
}

}  // namespace dryfly::motif
