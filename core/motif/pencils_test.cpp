// Exchanges between pieces of a mesh: numbering, whose pieces overlap, and that nothing is sent twice or left out.
#include "core/motif/workload/pencils.hpp"

#include <doctest/doctest.h>

#include <set>

namespace dryfly::motif {
namespace {

TEST_CASE("ranks and places are numbered one to one, in boxes or not") {
  for (const Triple& box : {Triple{1, 1, 1}, Triple{2, 3, 1}, Triple{4, 6, 8}}) {
    const Cut cut{.points = {9, 11, 13}, .pieces = {4, 6, 8}, .box = box};
    std::set<std::uint32_t> seen;
    for (std::uint32_t rank = 0; rank < cut.count(); ++rank) {
      CHECK(cut.rank_at(cut.place_of(rank)) == rank);
      seen.insert(rank);
    }
    CHECK(seen.size() == 192);
  }
  const Cut as_cart{.points = {8, 8, 8}, .pieces = {2, 2, 2}};
  CHECK(as_cart.place_of(1) == Triple{0, 0, 1});
  const Cut in_a_box{.points = {8, 8, 8}, .pieces = {2, 2, 2}, .box = {2, 2, 2}};
  CHECK(in_a_box.place_of(1) == Triple{1, 0, 0});
}

TEST_CASE("pieces of an axis follow one another, and each span finds those that it overlaps") {
  const Cut cut{.points = {25, 32, 32}, .pieces = {7, 1, 32}, .box = {1, 1, 1}};
  std::uint64_t next = 0;
  for (std::uint32_t piece = 0; piece < 7; ++piece) {
    const Cut::Span span = cut.span(0, piece);
    CHECK(span.first == next);
    next = span.last;
    const Cut::Span found = cut.overlapping(0, span);
    CHECK(found.first == piece);
    CHECK(found.last == piece + 1);
  }
  CHECK(next == 25);
  CHECK(cut.overlapping(0, {0, 25}).last == 7);
}

}  // namespace
}  // namespace dryfly::motif
