#include "core/record/link_record.hpp"

#include <algorithm>
#include <bit>

#include "core/unit/unit.hpp"

namespace dryfly {

void LinkRecord::carried(const CarriedPiece& piece) {
  Link& link = links_[piece.port];
  // Heads that a switch's drawn latency would put out of order seem to have started late: no two pieces share a link.
  const std::uint64_t busy_from_ps = std::max(piece.start_ps, link.busy_until_ps);
  link.busy_until_ps = busy_from_ps + (piece.end_ps - piece.start_ps);
  spread(link, busy_from_ps, link.busy_until_ps, [](Step& step, std::uint64_t ps) { step.busy_ps += ps; });
  if (piece.acknowledgement) return;
  if (piece.start_ps >= start_ps_) step_at(link, piece.start_ps - start_ps_).data_bytes += piece.bytes;
  if (piece.piece >= at_switch_since_.size()) at_switch_since_.resize(piece.piece + std::size_t{1}, never.ps);
  std::uint64_t& since_ps = at_switch_since_[piece.piece];
  if (since_ps <= piece.start_ps) {
    const std::uint64_t wait_ps = piece.start_ps - since_ps;
    ++link.waits[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(wait_ps)), wait_bins - 1)];
    link.longest_wait_ps = std::max(link.longest_wait_ps, wait_ps);
    spread(link, since_ps, piece.start_ps,
           [&](Step& step, std::uint64_t ps) { step.waiting_byte_ps += ps * piece.bytes; });
  }
  since_ps = piece.to_nic ? never.ps : piece.now_ps;  // the number may be given to another packet
}

LinkRecord::Step& LinkRecord::step_at(Link& link, std::uint64_t since_start_ps) {
  while (since_start_ps / step_ps_ >= most_steps) double_steps();
  const std::size_t place = since_start_ps / step_ps_;
  if (place >= link.steps.size()) link.steps.resize(place + 1);
  return link.steps[place];
}

void LinkRecord::double_steps() {
  step_ps_ *= 2;
  for (auto& [port, link] : links_) {
    for (std::size_t place = 0; place < link.steps.size(); place += 2) {
      Step sum = link.steps[place];
      if (place + 1 < link.steps.size()) {
        const Step& second = link.steps[place + 1];
        sum.busy_ps += second.busy_ps;
        sum.data_bytes += second.data_bytes;
        sum.waiting_byte_ps += second.waiting_byte_ps;
      }
      link.steps[place / 2] = sum;
    }
    link.steps.resize((link.steps.size() + 1) / 2);
  }
}

// Calls add(step, picoseconds) for each step that the interval touches.
template <class Add>
void LinkRecord::spread(Link& link, std::uint64_t from_ps, std::uint64_t to_ps, Add add) {
  std::uint64_t at_ps = std::max(from_ps, start_ps_) - start_ps_;
  const std::uint64_t end_ps = std::max(to_ps, start_ps_) - start_ps_;
  while (at_ps < end_ps) {
    Step& step = step_at(link, at_ps);  // may double the steps
    const std::uint64_t next_ps = std::min(end_ps, (at_ps / step_ps_ + 1) * step_ps_);
    add(step, next_ps - at_ps);
    at_ps = next_ps;
  }
}

}  // namespace dryfly
