#include <algorithm>

#include "core/motif/workload/hpl/row_exchange.hpp"

namespace dryfly::motif::hpl {
namespace {

std::uint64_t piece(const RowColumn& rows, std::uint32_t position) {
  if (!rows.problem->equal_pieces) return rows.moves->gathered[position + 1] - rows.moves->gathered[position];
  const std::uint64_t width = rows.moves->gathered.back();
  return width * (position + 1) / rows.size() - width * position / rows.size();
}

}  // namespace

// The processes' own pieces become pieces of equal size.
void equalise(const RowColumn& rows, flight::Transfers& transfers) {
  const std::uint64_t width = rows.moves->gathered.back();
  const auto overlap = [&](std::uint32_t owner, std::uint32_t receiver) {
    const std::uint64_t begin = std::max<std::uint64_t>(rows.moves->gathered[owner], width * receiver / rows.size());
    const std::uint64_t end =
        std::min<std::uint64_t>(rows.moves->gathered[owner + 1], width * (receiver + 1) / rows.size());
    return end - std::min(begin, end);
  };
  for (std::uint32_t other = 0; other < rows.size(); ++other) {
    if (other == rows.position) continue;
    const std::uint64_t leaves = overlap(rows.position, other);
    const std::uint64_t comes = overlap(other, rows.position);
    if (leaves > 0) rows.pass(transfers, other, leaves, 1, true);
    if (comes > 0) rows.pass(transfers, other, comes, 1, false);
  }
}

// Round the ring.
void roll(const RowColumn& rows, std::uint32_t lump, flight::Transfers& transfers) {
  const std::uint32_t previous = (rows.position + rows.size() - 1) % rows.size();
  const auto pieces = [&](std::uint32_t position) {
    std::uint64_t sum = 0;
    for (std::uint32_t turn = rows.lumping.first(lump, rows.size() - 1);
         turn < rows.lumping.first(lump + 1, rows.size() - 1); ++turn) {
      sum += piece(rows, (position + rows.size() - turn) % rows.size());
    }
    return sum;
  };
  rows.pass(transfers, (rows.position + 1) % rows.size(), pieces(rows.position), 1, true);
  rows.pass(transfers, previous, pieces(previous), 1, false);
}

}  // namespace dryfly::motif::hpl
