#include "core/motif/job/trouble.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/reach.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::motif {
namespace {

bool cuts(const fabric::Fault& fault, Instant now) {
  const bool is_cut = fault.kind == fabric::FaultKind::down || fault.kind == fabric::FaultKind::absent ||
                      fault.kind == fabric::FaultKind::flaps || fault.kind == fabric::FaultKind::drain;
  return is_cut && fault.from_ps <= now.ps;
}

bool meets(const fabric::Fault& fault, const fabric::Wiring& wiring, NicId nic) {
  const std::uint32_t port = wiring.nic_port(nic);
  return std::ranges::any_of(std::array{port, wiring.peer(port)}, [&](std::uint32_t end) {
    return std::binary_search(fault.ports.begin(), fault.ports.end(), end);
  });
}

// The number of the fault that has cut off one of its NICs; of one between switches where there is none. None: chance
// has lost it.
std::optional<std::size_t> cause(const fabric::FaultPlan& plan, const fabric::Wiring& wiring, const Load& load,
                                 Instant now) {
  std::optional<std::size_t> other;
  for (std::size_t number = 0; number < plan.faults.size(); ++number) {
    const fabric::Fault& fault = plan.faults[number];
    if (!cuts(fault, now)) continue;
    if (meets(fault, wiring, load.from) || meets(fault, wiring, load.to)) return number;
    if (!other) other = number;
  }
  return other;
}

}  // namespace

std::unique_ptr<Trouble> Trouble::planted_in(const Spec& spec, const Dragonfly& topology) {
  return fabric::FaultPlan::any_in(spec) ? std::make_unique<Trouble>(spec, topology) : nullptr;
}

Trouble::Trouble(const Spec& spec, const Dragonfly& topology)
    : wires_(Wires::read(spec)),
      wiring_(topology, fabric::FabricSpec::read(spec), spec),
      plan_(fabric::FaultPlan::read(spec, topology, wiring_)),
      faults_(plan_, wiring_, Instant{}),
      manager_(topology, faults_, [this] { return now_; }) {}

void Trouble::refuse_between_switches(const Spec& spec) const {
  for (std::uint64_t n = 0; n < plan_.faults.size(); ++n) {
    for (const std::uint32_t port : plan_.faults[n].ports) {
      if (wiring_.is_nic_port(port) || wiring_.is_nic_port(wiring_.peer(port))) continue;
      throw SpecError(fields::faults_where.at({n}) + " = `" + spec.text(fields::faults_where, {n}) + "`: `" +
                      spec.text(fields::faults_kind, {n}) +
                      "` of links between switches, of which the level latency has none: accepted are those of NICs, "
                      "or the levels links, packet and flow");
    }
  }
}

Instant Trouble::next_try(const Load& load, std::size_t timeouts, Instant last) const {
  if (timeouts == plan_.retry.delays_ps.size()) {
    refuse_given_up(plan_, wiring_, load, last + Duration{plan_.retry.timeout_ps});
  }
  return last + Duration{plan_.retry.timeout_ps + plan_.retry.delays_ps[timeouts]};
}

// It is refused, and sent again behind the one that was lost.
Carried Trouble::in_line(const Load& load, const Carried& times) {
  Line& line = lines_.at({load.from, load.to});
  const Duration home = times.answered - times.arrived;
  line.arrived = line.arrived + Duration{wires_.serialisation_ps(load.size)};
  return {.left = times.left, .arrived = line.arrived, .answered = line.arrived + home, .sent_again = true};
}

Trouble::Toll::Toll(Trouble& trouble, const Load& load, bool again)
    : trouble_(trouble),
      serial_ps_(trouble.wires_.serialisation_ps(load.size)),
      packets_(trouble.wires_.packets(load.size)),
      again_(again) {}

Lag Trouble::Toll::on(std::uint32_t port, std::uint64_t at_ps) {
  fabric::LinkFaults& faults = trouble_.faults_;
  ports_[links_++] = port;
  if (lost_ || !faults.concerns(port)) return {};
  Lag lag;
  for (std::uint64_t n = 0; n < packets_; ++n) lag.longer_ps += faults.delay_ps(port, at_ps, serial_ps_ / packets_);
  // The first packet waits on each link, those behind it on the slowest.
  const std::uint64_t first_ps = lag.longer_ps / packets_;
  const std::uint64_t rest_ps = lag.longer_ps - first_ps;
  lag.later_ps = first_ps + (rest_ps > stretched_ps_ ? rest_ps - stretched_ps_ : 0);
  stretched_ps_ = std::max(stretched_ps_, rest_ps);
  const std::uint64_t end_ps = at_ps + serial_ps_ + lag.longer_ps + trouble_.wiring_.flight_ps(port);
  lost_ = faults.down_during(port, at_ps, end_ps);
  return lag;
}

std::uint64_t Trouble::Toll::answer_ps(std::uint64_t at_ps) {
  fabric::LinkFaults& faults = trouble_.faults_;
  std::uint64_t later_ps = 0;
  for (std::size_t link = links_; link-- > 0 && !lost_;) {
    const std::uint32_t port = trouble_.wiring_.peer(ports_[link]);
    const std::uint64_t flight_ps = trouble_.wiring_.flight_ps(port);
    const std::uint64_t ack_ps = trouble_.wires_.ack_ps;
    if (faults.concerns(port)) {
      later_ps += faults.delay_ps(port, at_ps, ack_ps);
      answer_lost_ = answer_lost_ || faults.down_during(port, at_ps, at_ps + ack_ps + flight_ps);
    }
    at_ps += flight_ps + trouble_.wires_.switch_ps;
  }
  return later_ps;
}

void refuse_given_up(const fabric::FaultPlan& plan, const fabric::Wiring& wiring, const Load& load, Instant now) {
  const std::optional<std::size_t> number = cause(plan, wiring, load, now);
  constexpr double ps_per_s = 1e12;
  throw SpecError("faults" + (number ? "." + std::to_string(*number) : std::string{}) +
                  ": the network has given up a message from NIC n" + std::to_string(load.from.value) + " to n" +
                  std::to_string(load.to.value) + " at " + std::to_string(static_cast<double>(now.ps) / ps_per_s) +
                  " s of virtual time, which a skeleton cannot go on from");
}

void refuse_drained(const Spec& spec, const Dragonfly& topology, const Placement& placement) {
  if (!fabric::FaultPlan::any_in(spec)) return;
  std::vector<NicId> nics;
  for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) nics.push_back(placement.nic_of(rank));
  std::sort(nics.begin(), nics.end());
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  const fabric::Wiring wiring(topology, fabric::FabricSpec::read(spec), spec);
  const auto drained = fabric::drained(nics, topology, wiring, spec);
  if (!drained) return;
  throw SpecError(drained->second + ": a `drain` takes out NIC n" + std::to_string(drained->first.value) +
                  " of the job, for which there is no other way: accepted are drains of what no rank hangs on; to lose "
                  "it nevertheless, write a loss or a flap");
}

}  // namespace dryfly::motif
