// Parameters, in base units: x, y, z, the grid; bytes, edge, corner, of a message; neighbours, 6 or 26; steps; work_ps,
// of a step.
//
// All steps are run, however many: which waves of waiting ranks stay in is often settled after dozens of steps only,
// and a step then takes up to a tenth more or less than one of the first, which no sample of those shows.
#include "core/motif/workload/halo.hpp"

#include <array>
#include <string>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

// As near to a cube as its ranks allow; larger sides first.
std::array<std::uint32_t, 3> grid_for(std::uint32_t ranks) {
  std::array<std::uint32_t, 3> best{ranks, 1, 1};
  std::uint64_t best_surface = UINT64_MAX;
  for (std::uint64_t z = 1; z * z * z <= ranks; ++z) {
    if (ranks % z != 0) continue;
    for (std::uint64_t y = z; y * y <= ranks / z; ++y) {
      if (ranks / z % y != 0) continue;
      const std::uint64_t x = ranks / z / y;
      const std::uint64_t surface = x * y + y * z + z * x;
      if (surface >= best_surface) continue;
      best_surface = surface;
      best = {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)};
    }
  }
  return best;
}

std::array<std::uint32_t, 3> grid_of(Stage& stage, Parameters& parameters) {
  if (!parameters.has("x") && !parameters.has("y") && !parameters.has("z")) return grid_for(stage.ranks());
  std::array<std::uint32_t, 3> grid{};
  const std::array names{"x", "y", "z"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    grid[axis] = static_cast<std::uint32_t>(parameters.number(names[axis], 1, UINT32_MAX));
  }
  const std::uint64_t places = std::uint64_t{grid[0]} * grid[1] * grid[2];
  if (places != stage.ranks()) {
    throw SpecError("x * y * z = " + std::to_string(places) + ": accepted is " + std::to_string(stage.ranks()) +
                    ", the number of ranks");
  }
  return grid;
}

}  // namespace

Task exchange_halo(Rank& me, const Halo& halo) {
  const auto [nx, ny, nz] = halo.grid;
  const std::uint32_t x = me.id() % nx;
  const std::uint32_t y = me.id() / nx % ny;
  const std::uint32_t z = me.id() / nx / ny;
  for (std::uint64_t step = 0; step < halo.steps; ++step) {
    for (int sending = 0; sending < 2; ++sending) {
      for (std::uint32_t way = 0; way < 27; ++way) {
        const std::uint32_t dx = way % 3;
        const std::uint32_t dy = way / 3 % 3;
        const std::uint32_t dz = way / 9;
        const int axes = (dx != 1) + (dy != 1) + (dz != 1);
        if (axes == 0 || (axes > 1 && !halo.corners)) continue;
        const std::uint32_t peer = (x + nx + dx - 1) % nx + ((y + ny + dy - 1) % ny + (z + nz + dz - 1) % nz * ny) * nx;
        // The neighbour names the way from its side.
        if (sending == 0) me.irecv(peer, 26 - way);
        if (sending == 1) me.isend(peer, way, axes == 1 ? halo.face : axes == 2 ? halo.edge : halo.corner);
      }
    }
    co_await me.wait_all();
    co_await me.compute(halo.work);
  }
}

Answer predict_halo(Stage& stage, Parameters& parameters) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  const std::uint64_t face = parameters.number_or("bytes", 8, 0, most);
  const Halo halo{.grid = grid_of(stage, parameters),
                  .face = Bytes{face},
                  .edge = Bytes{parameters.number_or("edge", face, 0, most)},
                  .corner = Bytes{parameters.number_or("corner", face, 0, most)},
                  .corners = parameters.number_or("neighbours", 26, 6, 26) == 26,
                  .steps = parameters.number_or("steps", 10, 1, 1'000'000),
                  .work = Duration{parameters.number_or("work_ps", 0, 0, 1'000'000'000'000'000)}};
  parameters.check_all_used();
  Answer answer;
  stage.run([&](Rank& me) { return exchange_halo(me, halo); }, answer,
            [&](Job& job) { answer.time = Duration{job.end().ps / halo.steps}; });
  for (std::size_t axis = 0; axis < 3; ++axis) {
    answer.figures.emplace_back(std::string("grid_") + "xyz"[axis], halo.grid[axis]);
  }
  return answer;
}

}  // namespace dryfly::motif
