// The skeleton of a fast multipole method's exchange: who needs which boxes, and where operations stand in the list.
#include "core/motif/workload/fmm.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif::fmm {
namespace {

std::vector<std::uint32_t> counted(const std::vector<Run>& runs, std::uint32_t ranks) {
  std::vector<std::uint32_t> counts(ranks);
  for (const Run& run : runs) counts[run.rank] += run.count;
  return counts;
}

TEST_CASE("what lies up to two boxes around a piece is got, each box once") {
  // Pieces of 8 x 8 x 8 on 2 x 2 x 2 ranks: 12^3 - 8^3 boxes, of which 2 * 2 * 64 lie across two faces to one rank.
  const Cube cube(16, 8);
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    const std::vector<std::uint32_t> counts = counted(cube.gets(rank), 8);
    std::uint32_t all = 0;
    for (const std::uint32_t count : counts) all += count;
    CHECK(all == 1216);
    CHECK(counts[rank] == 0);
    CHECK(counts[rank ^ 1U] == 256);
    CHECK(counts[rank ^ 3U] == 128);
    CHECK(counts[rank ^ 7U] == 64);
  }
}

TEST_CASE("a rank puts to each other what that one would get of it") {
  // Pieces of different sizes, and one rank along an axis, which has its own boxes around its piece.
  for (const std::uint32_t ranks : {3U, 6U, 8U}) {
    const Cube cube(13, ranks);
    const std::vector<std::vector<Run>> puts = cube.puts();
    for (std::uint32_t target = 0; target < ranks; ++target) {
      const std::vector<std::uint32_t> got = counted(cube.gets(target), ranks);
      for (std::uint32_t source = 0; source < ranks; ++source) {
        CHECK(counted(puts[source], ranks)[target] == got[source]);
      }
    }
  }
}

TEST_CASE("in a list a rank's operations stand together, or one of each rank in turn") {
  const std::vector<std::uint32_t> counts{3, 1, 2};
  const List together(counts, false);
  CHECK(together.size() == 6);
  CHECK(together.positions(2) == std::vector<std::uint64_t>{4, 5});
  const List in_turns(counts, true);
  CHECK(in_turns.size() == 6);
  CHECK(in_turns.positions(0) == std::vector<std::uint64_t>{0, 3, 5});
  CHECK(in_turns.positions(1) == std::vector<std::uint64_t>{1});
  CHECK(in_turns.positions(2) == std::vector<std::uint64_t>{2, 4});
}

TEST_CASE("a cube whose pieces would be thinner than two boxes is refused") {
  CHECK_NOTHROW(Cube(4, 8));
  CHECK_THROWS_WITH_AS(Cube(3, 8), "boxes = 3: accepted is a number from 4, two for each of the ranks along a side",
                       SpecError);
}

}  // namespace
}  // namespace dryfly::motif::fmm
