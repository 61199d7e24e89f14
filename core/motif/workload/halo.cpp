// Parameters, in base units: x, y, z, the grid; bytes, edge, corner, of a message; neighbours, 6 or 26; steps; work_ps,
// of a step.
//
// All steps are run, however many: which waves of waiting ranks stay in is often settled after dozens of steps only,
// and a step then takes up to a tenth more or less than one of the first, which no sample of those shows.
#include "core/motif/workload/halo.hpp"

#include <string>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {

Task exchange_halo(Rank& me, const Halo& halo) {
  for (std::uint64_t step = 0; step < halo.steps; ++step) {
    halo.around.exchange(me);
    co_await me.wait_all();
    co_await me.compute(halo.work);
  }
}

Answer predict_halo(Stage& stage, Parameters& parameters) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  const std::uint64_t face = parameters.number_or("bytes", 8, 0, most);
  const Bytes edge{parameters.number_or("edge", face, 0, most)};
  const Bytes corner{parameters.number_or("corner", face, 0, most)};
  const bool corners = parameters.number_or("neighbours", 26, 6, 26) == 26;
  const Grid grid = Grid::read(parameters, stage.ranks());
  const Halo halo{.around = Neighbourhood::of_sizes(grid, Bytes{face}, edge, corner, corners),
                  .steps = parameters.number_or("steps", 10, 1, 1'000'000),
                  .work = Duration{parameters.number_or("work_ps", 0, 0, 1'000'000'000'000'000)}};
  parameters.check_all_used();
  Answer answer;
  stage.run([&](Rank& me) { return exchange_halo(me, halo); }, answer,
            [&](Job& job) { answer.count_step_of(job, halo.steps); });
  answer.add_sides("grid", grid.sides);
  return answer;
}

}  // namespace dryfly::motif
