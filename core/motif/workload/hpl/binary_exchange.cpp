#include <algorithm>

#include "core/motif/workload/hpl/row_exchange.hpp"

namespace dryfly::motif::hpl {

// Halves of the displaced rows go down a tree.
void spread(const RowColumn& rows, std::uint32_t number, flight::Transfers& transfers) {
  std::uint32_t low = 0;
  std::uint32_t high = rows.size();
  for (std::uint32_t before = 0; high - low > 1; ++before) {
    const std::uint32_t middle = (low + high + 1) / 2;
    if (before == number) {
      const std::uint64_t count = rows.moves->displaced[high] - rows.moves->displaced[middle];
      if (rows.position == low) rows.pass(transfers, middle, count, 0, true);
      if (rows.position == middle) rows.pass(transfers, low, count, 0, false);
      return;
    }
    (rows.position < middle ? high : low) = middle;
  }
}

// What has been gathered doubles with each round.
void gather(const RowColumn& rows, std::uint32_t number, flight::Transfers& transfers) {
  const std::uint32_t distance = 1U << number;
  const std::uint32_t blocks = std::min(distance, rows.size() - distance);  // that I have, and pass on
  const auto pass_from = [&](std::uint32_t begin, std::uint32_t peer, bool is_send) {
    const std::uint32_t end = begin + blocks;
    rows.pass(transfers, peer, rows.moves->gathered[std::min(end, rows.size())] - rows.moves->gathered[begin], 1,
              is_send);
    if (end > rows.size()) rows.pass(transfers, peer, rows.moves->gathered[end - rows.size()], 1, is_send);
  };
  pass_from(rows.position, (rows.position + rows.size() - distance) % rows.size(), true);
  pass_from((rows.position + distance) % rows.size(), (rows.position + distance) % rows.size(), false);
}

}  // namespace dryfly::motif::hpl
