// A skeleton in C++: each rank sends its right neighbour a message, then computes; the last step ends in a sum. As a
// workload of dryfly it would be core/motif/workload/ring.cpp (docs/guide/skeletons.md#in-c).
//
// Parameters, in base units: bytes, of a message; steps; work_ps, of a step; library, which chooses how to add up.
#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {

// Declared in core/motif/workload/workload.hpp once it is a workload.
Answer predict_ring(Stage& stage, Parameters& parameters);

namespace {

struct Ring {
  Bytes size;
  std::uint64_t steps;
  Duration work;
  Selection selection;
};

// What one rank does. Each call that a rank waits for has co_await before it.
Task program(Rank& me, const Ring& ring) {
  const std::uint32_t right = (me.id() + 1) % me.count();
  const std::uint32_t left = (me.id() + me.count() - 1) % me.count();
  constexpr std::uint32_t tag = 1;
  for (std::uint64_t step = 0; step < ring.steps; ++step) {
    me.irecv(left, tag);
    me.isend(right, tag, ring.size);
    co_await me.wait_all();
    co_await me.compute(ring.work);
  }
  co_await run_collective(me, world(me), {.what = Collective::allreduce, .size = Bytes{8}, .element = Bytes{8}},
                          ring.selection);
}

}  // namespace

Answer predict_ring(Stage& stage, Parameters& parameters) {
  const Ring ring{.size = Bytes{parameters.number_or("bytes", 8, 0, std::uint64_t{1} << 40)},
                  .steps = parameters.number_or("steps", 10, 1, 1'000'000),
                  .work = Duration{parameters.number_or("work_ps", 0, 0, 1'000'000'000'000)},
                  .selection = Selection::of_library(parameters.text_or("library", "mpich"))};
  parameters.check_all_used();
  Answer answer;
  stage.run([&](Rank& me) { return program(me, ring); }, answer,
            [&](Job& job) { answer.count_step_of(job, ring.steps); });
  answer.figures.emplace_back("steps", static_cast<double>(ring.steps));
  answer.chosen = ring.selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
