#include "core/motif/workload/hpl/broadcast.hpp"

namespace dryfly::motif::hpl {

bool chain(const PanelRow& panel, std::uint32_t begin, std::uint32_t end, std::uint32_t number,
           flight::Transfers& transfers) {
  if (begin >= end) return false;
  if (panel.position == 0 && number == 0) {
    panel.send(transfers, begin, panel.elements);
    return true;
  }
  if (panel.position < begin || panel.position >= end) return false;
  if (number == 0) {
    panel.receive(transfers, panel.position == begin ? 0 : panel.position - 1, panel.elements);
    return true;
  }
  if (number > 1 || panel.position + 1 == end) return false;
  panel.send(transfers, panel.position + 1, panel.elements);
  return true;
}

bool ring(const PanelRow& panel, std::uint32_t begin, std::uint32_t number, flight::Transfers& transfers) {
  return chain(panel, begin, panel.size, number, transfers) || !transfers.empty();
}

}  // namespace dryfly::motif::hpl
