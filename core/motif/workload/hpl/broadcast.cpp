#include "core/motif/workload/hpl/broadcast.hpp"

namespace dryfly::motif::hpl {

namespace {

// The position that gets it first has one round, in which it receives; the root's sends are all in its first.
bool alone(const PanelRow& panel, std::uint32_t position, std::uint32_t number, flight::Transfers& transfers) {
  if (number != 0) return false;
  if (panel.position == position) {
    panel.receive(transfers, 0, panel.elements);
    return true;
  }
  if (panel.position == 0) panel.send(transfers, position, panel.elements);
  return false;
}

bool long_modified(const PanelRow& panel, std::uint32_t number, flight::Transfers& transfers) {
  if (panel.position == 1) return alone(panel, 1, number, transfers);
  if (panel.position != 0) return spread_and_roll(panel, 2, number, transfers);
  if (number > 0) return spread_and_roll(panel, 2, number - 1, transfers);
  panel.send(transfers, 1, panel.elements);
  return true;
}

}  // namespace

bool PanelBroadcast::round(std::uint32_t number, flight::Transfers& transfers) const {
  if (panel_.size == 1) return false;
  switch (panel_.problem->broadcast) {
    case Broadcast::ring:
      return ring(panel_, 1, number, transfers);
    case Broadcast::ring_modified:
      return alone(panel_, 1, number, transfers) || ring(panel_, 2, number, transfers);
    case Broadcast::two_rings:
      return two_rings(panel_, 1, number, transfers);
    case Broadcast::two_rings_modified:
      return alone(panel_, 1, number, transfers) || two_rings(panel_, 2, number, transfers);
    case Broadcast::long_message:
      return spread_and_roll(panel_, 1, number, transfers);
    case Broadcast::long_modified:
      return long_modified(panel_, number, transfers);
  }
  return false;
}

Duration PanelBroadcast::rest() const {
  const std::uint32_t size = panel_.size;
  if (size > 1 && panel_.problem->broadcast == Broadcast::long_message) return panel_.lumping.rest(size - 1);
  if (size > 2 && panel_.problem->broadcast == Broadcast::long_modified && panel_.position != 1) {
    return panel_.lumping.rest(size - 2);
  }
  return {};
}

}  // namespace dryfly::motif::hpl
