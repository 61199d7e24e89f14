// A collective of all ranks, in a loop: the time of one.
//
//   bytes=N element=N root=N count=N      the call, as in core/motif/collective/collectives.hpp
//   algorithm=auto|NAME                   fan=N segment=N window=N: what a named one can be told
//   library=mpich|openmpi selection=FILE  who decides, where nobody names it; rules that are asked before the library's
//   messages=FILE                         a line for each message: source, target, bytes
//   full=1                                all turns are run
//
// Many turns are sampled where each of them waits for all ranks, so that none drifts away from the others: the first
// are run and counted as they are, the next ones in batches, and the mean of those stands for all others. The bound of
// the error is twice the standard error of that mean and what its halves differ by, and never below a floor, for a
// change behind the sample is not in it. On a machine with noise, or with faults that come and go, all turns are run:
// detours are so rare and long that what a sample has of them says little of the others.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/sample_mean.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

// When turns ended: of each, the sum over ranks.
using TurnEnds = std::vector<std::uint64_t>;

Task program(Rank& me, CollectiveCall call, Choice how, const Selection& selection, TurnEnds& ends) {
  const Communicator all = world(me);
  for (std::uint64_t& end : ends) {
    if (how.algorithm != nullptr) {
      co_await run_collective(me, all, call, how, selection);
    } else {
      co_await run_collective(me, all, call, selection);
    }
    end += me.now().ps;
  }
}

constexpr std::uint64_t first_turns = 8;
constexpr std::uint64_t batches = 8;
constexpr std::uint64_t batch = 8;
constexpr std::uint64_t sampled_turns = first_turns + batches * batch;
constexpr double smallest_bound = 0.01;
constexpr double largest_bound = 0.05;

// Of `count` turns, from how far ranks on average were in those that were run, and where the last one ended.
void answer_from_sample(const TurnEnds& ends, std::uint32_t ranks, Instant last, std::uint64_t count, Answer& answer) {
  const auto mean_end_ps = [&](std::uint64_t turns) { return static_cast<double>(ends[turns - 1]) / ranks; };
  SampleMean all;
  SampleMean later;
  for (std::uint64_t number = 0; number < batches; ++number) {
    const std::uint64_t begin = first_turns + number * batch;
    const double turn_ps = (mean_end_ps(begin + batch) - mean_end_ps(begin)) / static_cast<double>(batch);
    all.add(turn_ps);
    if (number >= batches / 2) later.add(turn_ps);
  }
  const double others_ps = all.mean() * static_cast<double>(count - sampled_turns);
  const double whole_ps = static_cast<double>(last.ps) + others_ps;
  const double halves_ps = 2 * std::abs(later.mean() - all.mean());
  const double doubt = (2 * all.standard_error() + halves_ps) / all.mean() * others_ps / whole_ps;
  answer.time = Duration{static_cast<std::uint64_t>(std::llround(whole_ps / static_cast<double>(count)))};
  answer.sampled = true;
  answer.error_bound = std::max(doubt, smallest_bound);
}

bool waits_for_all(Collective what) {
  return what == Collective::barrier || what == Collective::allreduce || what == Collective::allgather ||
         what == Collective::reduce_scatter_block;
}

bool reduces(Collective what) {
  return what == Collective::reduce || what == Collective::allreduce || what == Collective::reduce_scatter ||
         what == Collective::reduce_scatter_block;
}

CollectiveCall call_of(Collective what, Stage& stage, Parameters& parameters) {
  CollectiveCall call;
  call.what = what;
  if (what == Collective::barrier) return call;
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  call.size = Bytes{parameters.number_or("bytes", 8, 0, most)};
  std::uint64_t usual = reduces(what) ? 8 : 1;
  while (call.size.count % usual != 0) usual /= 2;
  call.element = Bytes{parameters.number_or("element", usual, 1, most)};
  if (call.size.count % call.element.count != 0) {
    throw SpecError("bytes = " + std::to_string(call.size.count) +
                    ": accepted is a multiple of element = " + std::to_string(call.element.count));
  }
  const bool rooted = what == Collective::bcast || what == Collective::reduce || what == Collective::gather ||
                      what == Collective::scatter;
  if (rooted) call.root = static_cast<std::uint32_t>(parameters.number_or("root", 0, 0, stage.ranks() - 1));
  return call;
}

Choice named_choice(const CollectiveCall& call, Parameters& parameters) {
  if (!parameters.has("algorithm") || parameters.text("algorithm") == "auto") return {};
  Choice how;
  how.algorithm = &algorithm_named(call.what, parameters.text("algorithm"));
  if (call.size.count > how.algorithm->bytes_most) {
    throw SpecError("bytes = " + std::to_string(call.size.count) + " of algorithm " + std::string(how.algorithm->name) +
                    ": accepted is at most " + std::to_string(how.algorithm->bytes_most));
  }
  how.fan = static_cast<std::uint32_t>(parameters.number_or("fan", 0, 1, 1U << 20));
  how.segment = Bytes{parameters.number_or("segment", 0, 0, std::uint64_t{1} << 40)};
  how.window = static_cast<std::uint32_t>(parameters.number_or("window", 0, 0, 1U << 20));
  complete(how);
  return how;
}

Selection selection_of(Parameters& parameters) {
  Selection selection = Selection::of_library(parameters.has("library") ? parameters.text("library") : "mpich");
  if (!parameters.has("selection")) return selection;
  const std::string& path = parameters.text("selection");
  std::ifstream file(path);
  if (!file) throw SpecError("selection = " + path + ": cannot be read");
  const std::string rules{std::istreambuf_iterator<char>(file), {}};
  selection.put_before(rules, path);
  return selection;
}

void write_messages(const std::string& path, const std::vector<SentMessage>& sent) {
  std::ofstream file(path);
  for (const SentMessage& message : sent) {
    file << message.source << ' ' << message.target << ' ' << message.size.count << '\n';
  }
  if (!file.flush()) throw SpecError("messages = " + path + ": cannot be written");
}

}  // namespace

Answer predict_collective(Collective what, Stage& stage, Parameters& parameters) {
  const CollectiveCall call = call_of(what, stage, parameters);
  const Choice how = named_choice(call, parameters);
  const Selection selection = selection_of(parameters);
  const std::uint64_t count = parameters.number_or("count", 1, 1, 1'000'000);
  const std::string listing = parameters.has("messages") ? parameters.text("messages") : "";
  bool full = (waits_for_all(what) && parameters.flag("full")) || count < 2 * sampled_turns || !listing.empty() ||
              !waits_for_all(what) || stage.has_noise() || stage.has_passing_faults();
  parameters.check_all_used();
  std::vector<SentMessage> sent;
  if (!listing.empty()) stage.list_messages(sent);
  Answer answer;
  const auto run = [&](std::uint64_t turns) {
    TurnEnds ends(turns);
    Instant last;
    stage.run([&](Rank& me) { return program(me, call, how, selection, ends); }, answer,
              [&](Job& job) { last = job.end(); });
    return std::pair{std::move(ends), last};
  };
  if (!full) {
    const auto [ends, last] = run(sampled_turns);
    answer_from_sample(ends, stage.ranks(), last, count, answer);
    full = answer.error_bound > largest_bound;
  }
  if (full) {
    answer.time = Duration{run(count).second.ps / count};
    answer.sampled = false;
    answer.error_bound = 0;
  }
  if (!listing.empty()) write_messages(listing, sent);
  return answer;
}

}  // namespace dryfly::motif
