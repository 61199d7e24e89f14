#include "core/network/flow/losses.hpp"

#include <algorithm>

namespace dryfly::flow {

Losses::Losses(const fabric::FaultPlan& plan, const Dragonfly& dragonfly, const Engine& engine,
               const fabric::Wiring& wiring, Instant start, std::uint64_t frame_ps)
    : engine_(engine),
      wiring_(wiring),
      faults_(plan, wiring, start),
      manager_(dragonfly, faults_, [&engine] { return engine.now(); }),
      ports_(faults_.ports()),
      changes_(faults_.changes()),
      frame_ps_(frame_ps) {
  changes_.insert(changes_.begin(), start.ps);
}

double Losses::worth(std::uint32_t port) const {
  // There is no way around the link of a NIC: what is sent over it is lost, but sent.
  const bool is_of_nic = wiring_.is_nic_port(port) || wiring_.is_nic_port(wiring_.peer(port));
  if (!is_of_nic && (faults_.absent(port) || manager_.avoids_link(port))) return 0;
  return faults_.worth(port, engine_.now().ps, frame_ps_);
}

bool Losses::look(Pipes& pipes) {
  if (next_look_ps() > engine_.now().ps) return false;
  while (next_look_ps() <= engine_.now().ps) ++next_;
  for (const std::uint32_t port : ports_) pipes.set_capacity(port, worth(port));
  return true;
}

void Losses::end(Pipes& pipes) {
  faults_.end();
  changes_.clear();
  for (const std::uint32_t port : ports_) pipes.set_capacity(port, worth(port));
}

bool Losses::lose(const std::vector<std::uint32_t>& ports, std::uint64_t from_ps, std::uint64_t for_ps,
                  std::uint64_t packets) {
  std::uint64_t at_ps = from_ps;
  for (const std::uint32_t port : ports) {
    const std::uint64_t flight_ps = wiring_.flight_ps(port);
    if (faults_.concerns(port) && faults_.down_during(port, at_ps, at_ps + for_ps + flight_ps)) {
      faults_.note_loss(port, packets);
      return true;
    }
    at_ps += flight_ps;
  }
  return false;
}

std::uint64_t Losses::delay_ps(const std::vector<std::uint32_t>& ports, std::uint64_t at_ps,
                               std::uint64_t transmission_ps, std::uint64_t packets) {
  std::uint64_t longest_ps = 0;
  for (const std::uint32_t port : ports) {
    if (!faults_.concerns(port)) continue;
    std::uint64_t here_ps = 0;
    for (std::uint64_t n = 0; n < packets; ++n) here_ps += faults_.delay_ps(port, at_ps, transmission_ps / packets);
    longest_ps = std::max(longest_ps, here_ps);
  }
  return longest_ps;
}

}  // namespace dryfly::flow
