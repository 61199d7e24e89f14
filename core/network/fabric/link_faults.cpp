#include "core/network/fabric/link_faults.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

namespace dryfly::fabric {
namespace {

constexpr std::uint64_t second_ps = 1'000'000'000'000;
constexpr std::uint32_t billion = 1'000'000'000;
constexpr std::uint64_t all_lanes = 4;

// The last beginning of a period at or before the instant, both counted from the start.
std::uint64_t floor_to(std::uint64_t at_ps, std::uint64_t period_ps) { return at_ps / period_ps * period_ps; }
std::uint64_t ceil_to(std::uint64_t at_ps, std::uint64_t period_ps) {
  return (at_ps + period_ps - 1) / period_ps * period_ps;
}
std::uint64_t later(std::uint64_t at_ps, std::uint64_t start_ps) {
  return at_ps == never.ps ? never.ps : at_ps + start_ps;
}

}  // namespace

LinkFaults::LinkFaults(const FaultPlan& plan, const Wiring& wiring, Instant start)
    : start_(start), sweeps_(plan.sweeps), seed_(plan.seed), number_of_(wiring.count(), none) {
  for (const Fault& fault : plan.faults) {
    for (const std::uint32_t port : fault.ports) add(fault, plan, port, wiring);
  }
}

void LinkFaults::add(const Fault& fault, const FaultPlan& plan, std::uint32_t port, const Wiring& wiring) {
  if (number_of_[port] == none) {
    number_of_[port] = static_cast<std::uint32_t>(links_.size());
    Link fresh;
    fresh.port = port;
    fresh.cable = std::min(port, wiring.peer(port));
    fresh.flight_ps = wiring.flight_ps(port);
    links_.push_back(std::move(fresh));
  }
  Link& link = links_[number_of_[port]];
  const Span span{fault.from_ps + start_.ps, later(fault.until_ps, start_.ps)};
  switch (fault.kind) {
    case FaultKind::absent:
      link.absent = true;
      link.down.push_back({0, never.ps});
      break;
    case FaultKind::down:
      link.down.push_back(span);
      break;
    case FaultKind::lanes:
      link.lanes.push_back({span, fault.lanes});
      break;
    case FaultKind::replays:
      link.replays.push_back({span, fault.rate_ppb, 0, 0, 0});
      break;
    case FaultKind::flaps:
      link.flaps.push_back({span, fault.rate_ppb, fault.least_ps, fault.most_ps, 0});
      break;
    case FaultKind::load:
      link.loads.push_back({span, fault.rate_ppb, 0, 0, 0});
      break;
    case FaultKind::drain: {
      link.drains.push_back(span);
      const std::uint64_t out_ps = drain_done_ps(fault.from_ps, plan.packet_age_ps) + start_.ps;
      if (out_ps < span.until_ps) link.down.push_back({out_ps, span.until_ps});
      break;
    }
  }
}

std::vector<std::uint32_t> LinkFaults::ports() const {
  std::vector<std::uint32_t> ports;
  for (const Link& link : links_) ports.push_back(link.port);
  return ports;
}

// The routes without the link are in force at the deployment sweep, and a packet age later none is left on it.
std::uint64_t LinkFaults::drain_done_ps(std::uint64_t ordered_ps, std::uint64_t packet_age_ps) const {
  const std::uint64_t routed_ps = ceil_to(ordered_ps, sweeps_.routing_ps);
  return ceil_to(routed_ps, sweeps_.deployment_ps) + packet_age_ps;
}

std::uint64_t LinkFaults::delay_ps(std::uint32_t port, std::uint64_t start_ps, std::uint64_t transmission_ps) {
  Link& link = links_[number_of_[port]];
  if (ended_) return 0;
  std::uint64_t whole_ps = transmission_ps;
  for (const LaneSpan& part : link.lanes) {
    if (start_ps < part.span.from_ps || start_ps >= part.span.until_ps) continue;
    whole_ps = std::max(whole_ps, (transmission_ps * all_lanes + part.lanes - 1) / part.lanes);
  }
  for (const RateSpan& part : link.loads) {
    if (start_ps < part.span.from_ps || start_ps >= part.span.until_ps) continue;
    __extension__ using Wide = unsigned __int128;
    whole_ps = static_cast<std::uint64_t>(static_cast<Wide>(whole_ps) * billion / (billion - part.rate_ppb));
  }
  std::uint64_t again_ps = 0;
  for (const RateSpan& part : link.replays) {
    if (start_ps < part.span.from_ps || start_ps >= part.span.until_ps) continue;
    const RandomStream stream{seed_, link.port, Purpose::replay};
    if (stream.below(link.packets++, billion) >= part.rate_ppb) continue;
    again_ps += 2 * std::uint64_t{link.flight_ps} + whole_ps;
    ++replays_;
    ++link.replayed;
  }
  return whole_ps - transmission_ps + again_ps;
}

double LinkFaults::worth(std::uint32_t port, std::uint64_t at_ps, std::uint64_t transmission_ps) const {
  const Link& link = links_[number_of_[port]];
  if (ended_) return 1;
  const auto holds = [&](const Span& span) { return span.from_ps <= at_ps && at_ps < span.until_ps; };
  const auto usual_ps = static_cast<double>(transmission_ps);
  double whole_ps = usual_ps;
  for (const LaneSpan& part : link.lanes) {
    if (holds(part.span)) whole_ps = std::max(whole_ps, usual_ps * all_lanes / part.lanes);
  }
  for (const RateSpan& part : link.loads) {
    if (holds(part.span)) whole_ps /= 1 - static_cast<double>(part.rate_ppb) / billion;
  }
  double again_ps = 0;
  for (const RateSpan& part : link.replays) {
    const double rate = static_cast<double>(part.rate_ppb) / billion;
    if (holds(part.span)) again_ps += rate * (2.0 * link.flight_ps + whole_ps);
  }
  return usual_ps / (whole_ps + again_ps);
}

std::vector<std::uint64_t> LinkFaults::changes() const {
  std::vector<std::uint64_t> all;
  const auto add = [&](const Span& span, bool routed) {
    for (const std::uint64_t at_ps : {span.from_ps, span.until_ps}) {
      if (at_ps == never.ps || at_ps < start_.ps) continue;
      all.push_back(at_ps);
      if (!routed) continue;
      // The first deployment of routes that know it is one of these.
      const std::uint64_t last_ps = at_ps + sweeps_.topology_ps + sweeps_.routing_ps + sweeps_.deployment_ps;
      for (std::uint64_t seen_ps = ceil_to(at_ps - start_.ps, sweeps_.deployment_ps) + start_.ps; seen_ps <= last_ps;
           seen_ps += sweeps_.deployment_ps) {
        all.push_back(seen_ps);
      }
    }
  };
  for (const Link& link : links_) {
    for (const Span& span : link.down) add(span, true);
    for (const Span& span : link.drains) add(span, true);
    for (const LaneSpan& part : link.lanes) add(part.span, false);
    for (const RateSpan& part : link.replays) add(part.span, false);
    for (const RateSpan& part : link.loads) add(part.span, false);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool LinkFaults::down_during(std::uint32_t port, std::uint64_t from_ps, std::uint64_t to_ps) {
  Link& link = links_[number_of_[port]];
  if (ended_) return link.absent;
  for (RateSpan& flaps : link.flaps) draw_flaps_until(link, flaps, to_ps);
  return std::any_of(link.down.begin(), link.down.end(),
                     [&](const Span& span) { return span.from_ps <= to_ps && from_ps < span.until_ps; });
}

std::vector<LinkHealth> LinkFaults::health(std::uint64_t until_ps) {
  // How long the spans are together, and of how many stretches that is.
  const auto covered = [&](std::vector<Span> spans) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.from_ps < b.from_ps; });
    std::pair<std::uint64_t, std::uint64_t> sum_and_stretches{0, 0};
    std::uint64_t end_ps = 0;
    for (const Span& span : spans) {
      const std::uint64_t from_ps = std::max(span.from_ps, start_.ps);
      const std::uint64_t span_end_ps = std::min(span.until_ps, until_ps);
      if (span_end_ps <= std::max(from_ps, end_ps)) continue;
      if (from_ps > end_ps || sum_and_stretches.second == 0) ++sum_and_stretches.second;
      sum_and_stretches.first += span_end_ps - std::max(from_ps, end_ps);
      end_ps = span_end_ps;
    }
    return sum_and_stretches;
  };
  std::vector<LinkHealth> all;
  for (Link& link : links_) {
    if (link.absent) continue;
    for (RateSpan& flaps : link.flaps) draw_flaps_until(link, flaps, until_ps);
    std::vector<Span> narrow;
    for (const LaneSpan& part : link.lanes) narrow.push_back(part.span);
    const auto holds = [&](const std::vector<Span>& spans) {
      return std::any_of(spans.begin(), spans.end(),
                         [&](const Span& span) { return span.from_ps <= until_ps && until_ps < span.until_ps; });
    };
    LinkHealth health{.port = link.port, .pieces_lost = link.packets_lost, .replays = link.replayed};
    std::tie(health.down_ps, health.times_down) = covered(link.down);
    health.fewer_lanes_ps = covered(narrow).first;
    health.drained_ps = covered(link.drains).first;
    health.signal_ps = signal_ps(link, until_ps);
    using State = LinkHealth::State;
    health.state = holds(link.drains) ? State::drained
                   : holds(link.down) ? State::down
                   : holds(narrow)    ? State::fewer_lanes
                                      : State::up;
    all.push_back(health);
  }
  std::sort(all.begin(), all.end(), [](const LinkHealth& a, const LinkHealth& b) { return a.port < b.port; });
  return all;
}

std::uint64_t LinkFaults::signal_ps(const Link& link, std::uint64_t until_ps) const {
  std::set<std::uint64_t> changes{start_.ps, std::max(start_.ps, until_ps)};
  const auto note = [&](const Span& span) {
    for (const std::uint64_t at_ps : {span.from_ps, span.until_ps}) {
      if (at_ps > start_.ps && at_ps < until_ps) changes.insert(at_ps);
    }
  };
  for (const Span& span : link.down) note(span);
  for (const LaneSpan& part : link.lanes) note(part.span);
  std::uint64_t quarters_ps = 0;
  for (auto at = changes.begin(); std::next(at) != changes.end(); ++at) {
    const auto holds = [&](const Span& span) { return span.from_ps <= *at && *at < span.until_ps; };
    if (std::any_of(link.down.begin(), link.down.end(), holds)) continue;
    std::uint64_t lanes = all_lanes;
    for (const LaneSpan& part : link.lanes) {
      if (holds(part.span)) lanes = std::min<std::uint64_t>(lanes, part.lanes);
    }
    quarters_ps += (*std::next(at) - *at) * lanes;
  }
  return quarters_ps / all_lanes;
}

// In each second a flap begins with the given probability, somewhere in that second. Its three draws are named by
// cable and second, so both directions see the same.
void LinkFaults::draw_flaps_until(Link& link, RateSpan& flaps, std::uint64_t at_ps) {
  if (at_ps < start_.ps) return;
  const RandomStream stream{seed_, link.cable, Purpose::flap};
  for (; start_.ps + flaps.next_second * second_ps <= at_ps; ++flaps.next_second) {
    const std::uint64_t draw = flaps.next_second * 3;
    if (stream.below(draw, billion) >= flaps.rate_ppb) continue;
    const std::uint64_t from_ps = start_.ps + flaps.next_second * second_ps + stream.draw(draw + 1) % second_ps;
    if (from_ps < flaps.span.from_ps || from_ps >= flaps.span.until_ps) continue;
    const std::uint64_t spread_ps = flaps.most_ps - flaps.least_ps + 1;
    link.down.push_back({from_ps, from_ps + flaps.least_ps + stream.draw(draw + 2) % spread_ps});
  }
}

bool LinkFaults::ordered_out(std::uint32_t port, std::uint64_t at_ps) const {
  const Link& link = links_[number_of_[port]];
  return !ended_ && std::any_of(link.drains.begin(), link.drains.end(),
                                [&](const Span& span) { return span.from_ps <= at_ps && at_ps < span.until_ps; });
}

std::uint64_t LinkFaults::orders_seen_ps(std::uint64_t at_ps) const {
  if (at_ps < start_.ps) return at_ps;
  const std::uint64_t deployed_ps = floor_to(at_ps - start_.ps, sweeps_.deployment_ps);
  return start_.ps + floor_to(deployed_ps, sweeps_.routing_ps);
}

std::uint64_t LinkFaults::seen_ps(std::uint64_t at_ps) const {
  const std::uint64_t routed_ps = orders_seen_ps(at_ps);
  if (routed_ps < start_.ps) return routed_ps;
  return start_.ps + floor_to(routed_ps - start_.ps, sweeps_.topology_ps);
}

}  // namespace dryfly::fabric
