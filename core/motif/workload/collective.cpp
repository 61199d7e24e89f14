// A collective of all ranks, in a loop: the time of one.
//
//   bytes=N element=N root=N count=N      the call, as in core/motif/collective/collectives.hpp
//   algorithm=auto|NAME                   fan=N segment=N window=N: what a named one can be told
//   library=mpich|openmpi selection=FILE  who decides, where nobody names it; rules that are asked before the library's
#include <fstream>
#include <iterator>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

Task program(Rank& me, CollectiveCall call, Choice how, const Selection& selection, std::uint64_t count) {
  const Communicator all = world(me);
  for (std::uint64_t turn = 0; turn < count; ++turn) {
    if (how.algorithm != nullptr) {
      co_await run_collective(me, all, call, how, selection);
    } else {
      co_await run_collective(me, all, call, selection);
    }
  }
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
  Selection selection = Selection::of_library(parameters.text_or("library", "mpich"));
  if (!parameters.has("selection")) return selection;
  const std::string& path = parameters.text("selection");
  std::ifstream file(path);
  if (!file) throw SpecError("selection = " + path + ": cannot be read");
  const std::string rules{std::istreambuf_iterator<char>(file), {}};
  selection.put_before(rules, path, "tuning file");
  return selection;
}

}  // namespace

Answer predict_collective(Collective what, Stage& stage, Parameters& parameters) {
  const CollectiveCall call = call_of(what, stage, parameters);
  const Choice how = named_choice(call, parameters);
  const Selection selection = selection_of(parameters);
  const std::uint64_t count = parameters.number_or("count", 1, 1, 1'000'000);
  parameters.check_all_used();
  Answer answer;
  stage.run([&](Rank& me) { return program(me, call, how, selection, count); }, answer,
            [&](Job& job) { answer.time = Duration{job.end().ps / count}; });
  answer.chosen = selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
