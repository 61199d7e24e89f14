// Allreduce of all ranks, in a loop: the time of one.
#include "core/motif/collective/collectives.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

Task program(Rank& me, Bytes size, std::uint64_t count) {
  const Communicator all = world(me);
  for (std::uint64_t turn = 0; turn < count; ++turn) co_await recursive_doubling_allreduce(me, all, size);
}

}  // namespace

Answer predict_allreduce(Stage& stage, Parameters& parameters) {
  const Bytes size{parameters.number_or("bytes", 8, 0, std::uint64_t{1} << 40)};
  const std::uint64_t count = parameters.number_or("count", 1, 1, 1'000'000);
  parameters.check_all_used();
  Answer answer;
  stage.run([&](Rank& me) { return program(me, size, count); }, answer,
            [&](Job& job) { answer.time = Duration{job.end().ps / count}; });
  return answer;
}

}  // namespace dryfly::motif
