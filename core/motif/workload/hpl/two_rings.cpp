#include "core/motif/workload/hpl/broadcast.hpp"

namespace dryfly::motif::hpl {

bool two_rings(const PanelRow& panel, std::uint32_t begin, std::uint32_t number, flight::Transfers& transfers) {
  const std::uint32_t middle = begin - 1 + (panel.size + 1) / 2;
  const bool first = chain(panel, begin, middle, number, transfers);
  const bool second = chain(panel, middle, panel.size, number, transfers);
  return first || second || !transfers.empty();
}

}  // namespace dryfly::motif::hpl
