// AMReX's boxes and exchanges: whose boxes are whose, and what is sent, counted point by point in small domains.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <utility>

#include "core/motif/workload/amrwind/boxes.hpp"
#include "core/motif/workload/amrwind/step.hpp"

namespace dryfly::motif::amrwind {
namespace {

using Point = std::array<std::int64_t, 3>;
using Sent = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;  // source, target: points

constexpr Closed closed{true, true, false};

Sent all_of(const Traffic& traffic, std::uint32_t ranks) {
  Sent sent;
  Sent received;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Traffic::Message& message : traffic.sent_by(rank)) sent[{rank, message.peer}] += message.points;
    for (const Traffic::Message& message : traffic.received_by(rank)) received[{message.peer, rank}] += message.points;
  }
  CHECK(sent == received);
  return sent;
}

struct Extent {
  Point first{};
  Point last{};

  bool has(const Point& point) const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (point[axis] < first[axis] || point[axis] > last[axis]) return false;
    }
    return true;
  }
  Extent grown(std::int64_t depth) const {
    Extent grown = *this;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      grown.first[axis] -= depth;
      grown.last[axis] += depth;
    }
    return grown;
  }
};

Extent extent_of(const Boxes& boxes, std::uint32_t box, const Nodal& nodal, const Point& shift = {}) {
  const Triple place = boxes.place_of(box);
  Extent extent;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    extent.first[axis] = boxes.cuts[axis][place[axis]] + shift[axis];
    extent.last[axis] = boxes.cuts[axis][place[axis] + 1] - (nodal[axis] ? 0 : 1) + shift[axis];
  }
  return extent;
}

template <typename Visit>
void each_point(const Extent& extent, const Visit& visit) {
  Point point{};
  for (point[2] = extent.first[2]; point[2] <= extent.last[2]; ++point[2]) {
    for (point[1] = extent.first[1]; point[1] <= extent.last[1]; ++point[1]) {
      for (point[0] = extent.first[0]; point[0] <= extent.last[0]; ++point[0]) visit(point);
    }
  }
}

// The domain and its repetitions along closed axes.
std::vector<Point> shifts_of(const Boxes& boxes) {
  std::vector<Point> shifts;
  for (const std::int64_t x : {-1, 0, 1}) {
    for (const std::int64_t y : {-1, 0, 1}) shifts.push_back({x * boxes.cuts[0].back(), y * boxes.cuts[1].back(), 0});
  }
  return shifts;
}

// Behind a face: along one axis only the point is outside.
bool behind_face(const Extent& valid, const Point& point) {
  int outside = 0;
  for (std::size_t axis = 0; axis < 3; ++axis)
    outside += point[axis] < valid.first[axis] || point[axis] > valid.last[axis];
  return outside == 1;
}

Sent counted_ghosts(const Boxes& boxes, std::int64_t depth, const Nodal& nodal, bool crosswise) {
  Sent all;
  Sent faces;
  for (std::uint32_t to = 0; to < boxes.count(); ++to) {
    const Extent valid = extent_of(boxes, to, nodal);
    for (const Point& shift : shifts_of(boxes)) {
      for (std::uint32_t from = 0; from < boxes.count(); ++from) {
        const Extent source = extent_of(boxes, from, nodal, shift);
        if (boxes.owners[from] == boxes.owners[to]) continue;
        each_point(valid.grown(depth), [&](const Point& point) {
          if (valid.has(point) || !source.has(point)) return;
          const std::pair between{boxes.owners[from], boxes.owners[to]};
          ++all[between];
          if (behind_face(valid, point)) ++faces[between];
        });
      }
    }
  }
  if (crosswise) {
    for (const auto& [between, points] : faces) all[between] = points;
  }
  return all;
}

Sent counted_shared(const Boxes& boxes) {
  constexpr Nodal nodal{true, true, true};
  Sent all;
  for (std::uint32_t to = 0; to < boxes.count(); ++to) {
    each_point(extent_of(boxes, to, nodal), [&](const Point& point) {
      std::uint32_t least = to;
      for (const Point& shift : shifts_of(boxes)) {
        for (std::uint32_t from = 0; from < least; ++from) {
          if (extent_of(boxes, from, nodal, shift).has(point)) least = from;
        }
      }
      if (boxes.owners[least] != boxes.owners[to]) ++all[{boxes.owners[least], boxes.owners[to]}];
    });
  }
  return all;
}

Sent counted_copies(const Boxes& from, const Boxes& to, const Nodal& nodal) {
  Sent all;
  for (std::uint32_t source = 0; source < from.count(); ++source) {
    for (std::uint32_t target = 0; target < to.count(); ++target) {
      if (from.owners[source] == to.owners[target]) continue;
      const Extent wanted = extent_of(to, target, nodal);
      each_point(extent_of(from, source, nodal), [&](const Point& point) {
        if (wanted.has(point)) ++all[{from.owners[source], to.owners[target]}];
      });
    }
  }
  return all;
}

TEST_CASE("ranks have boxes along a Morton curve, x first") {
  const Boxes boxes = Boxes::even({4, 2, 2}, {8, 8, 8});
  std::vector<std::uint32_t> expected{0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
  CHECK(boxes.owners == expected);
  // Boxes of 16, 8 and 16 cells: the curve goes by first cells, so that y goes on before x.
  CHECK(Boxes::even({2, 2, 1}, {16, 8, 16}).owners == std::vector<std::uint32_t>{0, 2, 1, 3});
}

TEST_CASE("of few boxes the first ranks have one each, and of many a rank has several") {
  const Boxes few = Boxes::of_domain({12, 12, 4}, 8, 16);
  CHECK(few.cuts[0] == std::vector<std::uint32_t>{0, 8, 12});
  CHECK(few.owners == std::vector<std::uint32_t>{0, 1, 2, 3});
  const Boxes many = Boxes::of_domain({32, 8, 8}, 4, 8);
  std::map<std::uint32_t, int> of;
  for (const std::uint32_t owner : many.owners) ++of[owner];
  CHECK(of.size() == 8);
  for (const auto& [rank, count] : of) CHECK(count == 4);
}

TEST_CASE("ghosts are those that a count point by point finds") {
  for (const Triple& sides : {Triple{2, 2, 2}, Triple{3, 1, 2}, Triple{1, 4, 1}, Triple{3, 3, 1}}) {
    const Boxes boxes = Boxes::even(sides, {4, 6, 4});
    for (const Nodal& nodal : {Nodal{false, false, false}, Nodal{true, false, false}, Nodal{true, true, true}}) {
      for (const std::uint32_t depth : {1U, 3U}) {
        const Traffic traffic = Traffic::ghosts(boxes, boxes.count(), depth, nodal, false, closed);
        CHECK(all_of(traffic, boxes.count()) == counted_ghosts(boxes, depth, nodal, false));
      }
    }
    const Traffic crosswise = Traffic::ghosts(boxes, boxes.count(), 1, {false, false, false}, true, closed);
    CHECK(all_of(crosswise, boxes.count()) == counted_ghosts(boxes, 1, {false, false, false}, true));
  }
}

TEST_CASE("shared points come from the box of the least number, as a count point by point finds") {
  for (const Triple& sides : {Triple{2, 2, 2}, Triple{3, 1, 2}, Triple{4, 3, 1}}) {
    const Boxes boxes = Boxes::even(sides, {4, 2, 4});
    const Traffic traffic = Traffic::shared_points(boxes, boxes.count(), closed);
    CHECK(all_of(traffic, boxes.count()) == counted_shared(boxes));
  }
}

TEST_CASE("copies between boxes that lie otherwise are those that a count point by point finds") {
  const Boxes fine = Boxes::even({3, 3, 2}, {4, 4, 4});
  const Boxes coarse = Boxes::of_domain({6, 6, 4}, 4, fine.count());
  for (const Nodal& nodal : {Nodal{false, false, false}, Nodal{false, true, false}, Nodal{true, true, true}}) {
    const Traffic down = Traffic::copies(fine.coarsened(), coarse, fine.count(), nodal);
    CHECK(all_of(down, fine.count()) == counted_copies(fine.coarsened(), coarse, nodal));
    const Traffic up = Traffic::copies(coarse, fine.coarsened(), fine.count(), nodal);
    CHECK(all_of(up, fine.count()) == counted_copies(coarse, fine.coarsened(), nodal));
  }
}

// 8^3 cells are 512 of a rank, 0.999 times which is where gathering begins.
TEST_CASE("levels are halved while all axes can be, and gathered below so many cells of a rank") {
  const Levels levels({.sides = {4, 4, 4}, .cells = {16, 16, 16}, .gather = 8});
  CHECK(levels.count() == 6);  // 64, 32, 16, 8, 4, 2 cells along each axis
  CHECK(levels.first_gathered() == 2);
  CHECK(levels.cells_of(1, 63) == 512);
  // Eight boxes of 8^3, of the first eight ranks.
  CHECK(levels.cells_of(2, 7) == 512);
  CHECK(levels.cells_of(2, 8) == 0);
  CHECK(levels.bottom_ranks() == std::vector<std::uint32_t>{0});
  // Flat: z has two cells left after seven times.
  const Levels flat({.sides = {32, 32, 1}, .cells = {256, 256, 256}, .gather = 32});
  CHECK(flat.count() == 8);
  CHECK(flat.first_gathered() == 4);
  CHECK(flat.bottom_ranks().size() == 4);  // 64 x 64 x 2 cells in boxes of 32 x 32 x 2
}

// 64 cells wide: 6.4 iterations on faces are 13 halves, and 24 on nodes 48. The second half of an iteration has a sum
// of two numbers, and what makes the equation on nodes solvable another.
TEST_CASE("iterations on the coarsest level follow from its width") {
  const auto sums_of_two = [](const Step& step) {
    std::uint64_t count = 0;
    for (const std::uint32_t part : step.order()) {
      count += step.parts()[part].kind == Part::Kind::bottom_sum && step.parts()[part].size == 16;
    }
    return count;
  };
  Problem problem{.sides = {32, 32, 1}, .cells = {256, 256, 256}, .gather = 32};
  CHECK(sums_of_two(Step(problem)) == 6 + 24 + 1);
  problem.mac.halves = 5;
  problem.nodal = {.cycles = 2, .halves = 4};
  CHECK(sums_of_two(Step(problem)) == 2 + 2 * (2 + 1));
}

}  // namespace
}  // namespace dryfly::motif::amrwind
