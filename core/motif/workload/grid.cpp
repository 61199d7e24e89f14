#include "core/motif/workload/grid.hpp"

#include <string>

#include "core/motif/job/rank.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {

Grid Grid::near_cube(std::uint32_t ranks) {
  Grid best{.sides = {ranks, 1, 1}};
  std::uint64_t best_surface = UINT64_MAX;
  for (std::uint64_t z = 1; z * z * z <= ranks; ++z) {
    if (ranks % z != 0) continue;
    for (std::uint64_t y = z; y * y <= ranks / z; ++y) {
      if (ranks / z % y != 0) continue;
      const std::uint64_t x = ranks / z / y;
      const std::uint64_t surface = x * y + y * z + z * x;
      if (surface >= best_surface) continue;
      best_surface = surface;
      best.sides = {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)};
    }
  }
  return best;
}

Grid Grid::read(Parameters& parameters, std::uint32_t ranks) {
  if (!parameters.has("x") && !parameters.has("y") && !parameters.has("z")) return near_cube(ranks);
  Grid grid;
  const std::array names{"x", "y", "z"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    grid.sides[axis] = static_cast<std::uint32_t>(parameters.number(names[axis], 1, UINT32_MAX));
  }
  const auto [x, y, z] = grid.sides;
  const std::uint64_t places = std::uint64_t{x} * y * z;
  if (places != ranks) {
    throw SpecError("x * y * z = " + std::to_string(places) + ": accepted is " + std::to_string(ranks) +
                    ", the number of ranks");
  }
  return grid;
}

Neighbourhood Neighbourhood::of_sizes(const Grid& grid, Bytes face, Bytes edge, Bytes corner, bool corners) {
  Neighbourhood around{.grid = grid, .headings = {}};
  for (std::uint32_t way = 0; way < 27; ++way) {
    const Heading next{.x = way % 3, .y = way / 3 % 3, .z = way / 9, .size = {}};
    const int axes = (next.x != 1) + (next.y != 1) + (next.z != 1);
    if (axes == 0 || (axes > 1 && !corners)) continue;
    around.headings.push_back(next);
    around.headings.back().size = axes == 1 ? face : axes == 2 ? edge : corner;
  }
  return around;
}

Neighbourhood Neighbourhood::of_box(const Grid& grid, const std::array<std::uint64_t, 3>& cells, Bytes of_cell) {
  Neighbourhood around = of_sizes(grid, {}, {}, {}, true);
  for (Heading& heading : around.headings) {
    const std::uint64_t x = heading.x == 1 ? cells[0] : 1;
    const std::uint64_t y = heading.y == 1 ? cells[1] : 1;
    const std::uint64_t z = heading.z == 1 ? cells[2] : 1;
    heading.size = Bytes{x * y * z * of_cell.count};
  }
  return around;
}

std::uint32_t Neighbourhood::peer(const std::array<std::uint32_t, 3>& place, const Heading& heading) const {
  const std::array<std::uint32_t, 3> steps{heading.x, heading.y, heading.z};
  std::array<std::uint32_t, 3> there{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint32_t side = grid.sides[axis];
    const std::uint32_t moved = place[axis] + steps[axis];  // one more than where it is
    if (!grid.closed && (moved == 0 || moved > side)) return no_rank;
    there[axis] = moved == 0 ? side - 1 : moved > side ? 0 : moved - 1;
  }
  return there[0] + (there[1] + there[2] * grid.sides[1]) * grid.sides[0];
}

void Neighbourhood::receive(Rank& me) const {
  const std::array<std::uint32_t, 3> place = grid.place_of(me.id());
  for (const Heading& heading : headings) {
    const std::uint32_t from = peer(place, heading);
    // The neighbour names the way from its side.
    if (from != no_rank) me.irecv(from, 26 - heading.number());
  }
}

void Neighbourhood::exchange(Rank& me) const {
  receive(me);
  const std::array<std::uint32_t, 3> place = grid.place_of(me.id());
  for (const Heading& heading : headings) {
    const std::uint32_t to = peer(place, heading);
    if (to != no_rank) me.isend(to, heading.number(), heading.size);
  }
}

}  // namespace dryfly::motif
