// Probes of a machine from a file, step by step: in each, pairs of ranks measure what is between them, all at once, and
// nobody is in two. What `dryfly validate` asks of a simulated machine; programs/benchmark/probe.c does the same with
// MPI.
//
//   file=PATH    the steps; out=PATH    what was measured
//
// A line of the file begins a step, `step KIND BYTES COUNT`, or is a pair of the present one, `A B`; a third number,
// the GPU in whose memory a program has its buffers, is passed over. The kinds:
//
//   pingpong  COUNT messages there and back; best and mean of half such a round
//   stream    COUNT messages both ways, all begun at once; how long A and B took
//   send      COUNT messages from A, each complete before the next, for which B has posted; the fastest, and the
//             RANK-th of them, where `step send BYTES COUNT RANK` says so
//   work      A computes for COUNT nanoseconds, B is A; how long it took
//
// Of each pair a line `STEP A B FIRST SECOND`, in picoseconds; of each step `step NUMBER BEGIN END`, instants.
//
// A step begins when the last has ended for all, without a message that says so. Two ranks of a pair meet before they
// measure, as programs would.
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

enum class Kind : std::uint8_t { pingpong, stream, send, work };
const std::map<std::string, Kind> kinds{
    {"pingpong", Kind::pingpong}, {"stream", Kind::stream}, {"send", Kind::send}, {"work", Kind::work}};

enum Tag : std::uint32_t { to_meet = 1, to_measure = 2 };

struct Pair {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint64_t first_ps = 0;
  std::uint64_t second_ps = 0;
};

struct Step {
  Kind kind = Kind::pingpong;
  Bytes size;
  std::uint64_t count = 1;
  std::uint64_t rank = 1;  // of a send's times, from the fastest on
  std::vector<Pair> pairs;
  std::uint64_t begin_ps = never.ps;
  std::uint64_t end_ps = 0;
};

class ProbeFile {
 public:
  explicit ProbeFile(std::string path) : path_(std::move(path)) {}

  // Throws SpecError.
  std::vector<Step> read(std::uint32_t ranks) {
    std::ifstream file(path_);
    if (!file) throw SpecError("file = " + path_ + ": cannot be read");
    std::vector<Step> steps;
    std::vector<std::size_t> used(ranks, 0);  // the last step of each rank, from 1
    for (std::string line; std::getline(file, line);) {
      ++number_;
      std::istringstream words(line);
      std::string word;
      if (!(words >> word) || word.starts_with('#')) continue;
      if (word == "step") {
        steps.push_back(step(words));
        continue;
      }
      if (steps.empty()) refuse("accepted is `step KIND BYTES COUNT` before the first pair");
      Pair pair;
      std::istringstream both(line);
      if (!(both >> pair.a >> pair.b) || pair.a >= ranks || pair.b >= ranks) {
        refuse("accepted are two ranks below " + std::to_string(ranks));
      }
      if ((pair.a == pair.b) != (steps.back().kind == Kind::work)) {
        refuse("accepted are two ranks, of `work` twice the same");
      }
      for (const std::uint32_t rank : {pair.a, pair.b}) {
        if (used[rank] == steps.size() && rank != pair.a) refuse("rank " + std::to_string(rank) + " is in two pairs");
        if (used[rank] == steps.size() && rank == pair.a && pair.a != pair.b) {
          refuse("rank " + std::to_string(rank) + " is in two pairs");
        }
        used[rank] = steps.size();
      }
      steps.back().pairs.push_back(pair);
    }
    return steps;
  }

 private:
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw SpecError(path_ + ", line " + std::to_string(number_) + ": " + sentence);
  }
  Step step(std::istringstream& words) const {
    std::string kind;
    Step step;
    if (!(words >> kind >> step.size.count >> step.count) || !kinds.contains(kind) || step.count == 0 ||
        step.size.count > (std::uint64_t{1} << 30) || step.count > 1'000'000'000) {
      refuse("accepted is `step KIND BYTES COUNT`, KIND pingpong, stream, send or work, BYTES up to 2^30");
    }
    step.kind = kinds.at(kind);
    if (words >> step.rank && (step.kind != Kind::send || step.rank == 0 || step.rank > step.count)) {
      refuse("accepted is a RANK of 1 to COUNT, of send");
    }
    return step;
  }

  std::string path_;
  std::size_t number_ = 0;
};

class Probes {
 public:
  Probes(std::vector<Step> steps, std::uint32_t ranks) : steps_(std::move(steps)), pair_of_(ranks, nobody) {}

  Task program(Rank& me) {
    for (Step& step : steps_) {
      co_await me.gather();
      if (me.id() == 0) place(step);
      co_await me.gather();
      const std::uint32_t mine = pair_of_[me.id()];
      if (mine == nobody) continue;
      step.begin_ps = std::min(step.begin_ps, me.now().ps);
      co_await measure(me, step, step.pairs[mine]);
      step.end_ps = std::max(step.end_ps, me.now().ps);
    }
  }

  const std::vector<Step>& steps() const { return steps_; }

 private:
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  void place(const Step& step) {
    std::ranges::fill(pair_of_, nobody);
    for (std::uint32_t number = 0; number < step.pairs.size(); ++number) {
      pair_of_[step.pairs[number].a] = pair_of_[step.pairs[number].b] = number;
    }
  }

  static Task measure(Rank& me, const Step& step, Pair& pair) {
    const bool is_a = me.id() == pair.a;
    const std::uint32_t other = is_a ? pair.b : pair.a;
    if (step.kind == Kind::work) {
      const Instant begun = me.now();
      co_await me.compute(Duration{step.count * 1000});
      pair.first_ps = pair.second_ps = (me.now() - begun).ps;
      co_return;
    }
    if (step.kind == Kind::send && !is_a) {
      for (std::uint64_t n = 0; n < step.count; ++n) me.irecv(other, to_measure);
    }
    co_await me.wait(me.irecv(other, to_meet), me.isend(other, to_meet, Bytes{0}));
    switch (step.kind) {
      case Kind::stream:
        co_await stream(me, step, other, is_a ? pair.first_ps : pair.second_ps);
        break;
      case Kind::send:
        co_await sends(me, step, pair, is_a);
        break;
      default:
        co_await rounds(me, step, pair, is_a);
    }
    co_await me.sendrecv(other, other, to_meet, Bytes{0});
  }

  static Task stream(Rank& me, const Step& step, std::uint32_t other, std::uint64_t& took_ps) {
    const Instant begun = me.now();
    for (std::uint64_t n = 0; n < step.count; ++n) me.irecv(other, to_measure);
    for (std::uint64_t n = 0; n < step.count; ++n) me.isend(other, to_measure, step.size);
    co_await me.wait_all();
    took_ps = (me.now() - begun).ps;
  }

  static Task sends(Rank& me, const Step& step, Pair& pair, bool is_a) {
    if (!is_a) {
      co_await me.wait_all();
      co_return;
    }
    std::vector<std::uint64_t> times;
    for (std::uint64_t n = 0; n < step.count; ++n) {
      const Instant before = me.now();
      co_await me.send(pair.b, to_measure, step.size);
      times.push_back((me.now() - before).ps);
    }
    std::ranges::sort(times);
    pair.first_ps = times.front();
    pair.second_ps = times[step.rank - 1];
  }

  static Task rounds(Rank& me, const Step& step, Pair& pair, bool is_a) {
    const std::uint32_t other = is_a ? pair.b : pair.a;
    const Instant begun = me.now();
    std::uint64_t best_ps = never.ps;
    for (std::uint64_t n = 0; n < step.count; ++n) {
      const Instant before = me.now();
      if (is_a) co_await me.send(other, to_measure, step.size);
      co_await me.recv(other, to_measure);
      if (!is_a) co_await me.send(other, to_measure, step.size);
      best_ps = std::min(best_ps, (me.now() - before).ps);
    }
    if (!is_a) co_return;
    pair.first_ps = best_ps / 2;
    pair.second_ps = (me.now() - begun).ps / (2 * step.count);
  }

  std::vector<Step> steps_;
  std::vector<std::uint32_t> pair_of_;  // of each rank in the present step
};

void write(const std::string& path, const std::vector<Step>& steps) {
  std::ofstream file(path);
  for (std::size_t number = 0; number < steps.size(); ++number) {
    const Step& step = steps[number];
    if (step.pairs.empty()) continue;
    file << "step " << number << ' ' << step.begin_ps << ' ' << step.end_ps << '\n';
    for (const Pair& pair : step.pairs) {
      file << number << ' ' << pair.a << ' ' << pair.b << ' ' << pair.first_ps << ' ' << pair.second_ps << '\n';
    }
  }
  if (!file.flush()) throw SpecError("out = " + path + ": cannot be written");
}

}  // namespace

Answer predict_probe(Stage& stage, Parameters& parameters) {
  const std::string out = parameters.text("out");
  Probes probes(ProbeFile(parameters.text("file")).read(stage.ranks()), stage.ranks());
  parameters.check_all_used();
  Answer answer;
  stage.run([&](Rank& me) { return probes.program(me); }, answer,
            [&](Job& job) { answer.time = job.end() - Instant{}; });
  write(out, probes.steps());
  double pairs = 0;
  for (const Step& step : probes.steps()) pairs += static_cast<double>(step.pairs.size());
  answer.figures.emplace_back("pairs", pairs);
  return answer;
}

}  // namespace dryfly::motif
