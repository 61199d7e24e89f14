#include "core/motif/workload/hpl/row_exchange.hpp"

#include <bit>

namespace dryfly::motif::hpl {

RowExchange::RowExchange(const RowColumn& rows)
    : rows_(rows),
      tree_rounds_(static_cast<std::uint32_t>(std::bit_width(rows.size() - 1))),
      binary_(rows.problem->swap == Swap::binary ||
              (rows.problem->swap == Swap::mix && rows.columns <= rows.problem->swap_threshold)) {}

bool RowExchange::round(std::uint32_t number, flight::Transfers& transfers) const {
  if (rows_.columns == 0) return false;
  if (number < tree_rounds_) {
    spread(rows_, number, transfers);
    if (binary_) gather(rows_, number, transfers);
    return true;
  }
  if (binary_) return false;
  const bool equal = rows_.problem->equal_pieces;
  const std::uint32_t turn = number - tree_rounds_;
  if (equal && turn == 0) {
    equalise(rows_, transfers);
    return true;
  }
  const std::uint32_t lump = turn - (equal ? 1 : 0);
  if (lump >= rows_.lumping.run(rows_.size() - 1)) return false;
  roll(rows_, lump, transfers);
  return true;
}

Duration RowExchange::rest() const {
  return binary_ || rows_.columns == 0 ? Duration{} : rows_.lumping.rest(rows_.size() - 1);
}

}  // namespace dryfly::motif::hpl
