#include "conductor/counter_sources.hpp"

#include <algorithm>

#include "core/spec/fields.hpp"

namespace dryfly {
namespace {

constexpr Bytes code_word{640};  // of data, docs/model/counters.md#code-words

const LinkHealth* of_port(const std::vector<LinkHealth>& links, std::uint32_t port) {
  const auto found = std::ranges::lower_bound(links, port, {}, &LinkHealth::port);
  return found != links.end() && found->port == port ? &*found : nullptr;
}

}  // namespace

CounterSources::CounterSources(const Spec& spec, const Dragonfly& topology, const Network& network, const Nics& nics,
                               const storage::StorageTraffic* storage)
    : topology_(topology),
      network_(network),
      nics_(nics),
      storage_(storage),
      code_word_(transmission_time(code_word, Rate{spec.number(fields::fabric_link_rate_bytes_per_s)})) {}

std::vector<NicCounters> CounterSources::read(Instant now) const {
  std::vector<NicCounters> nics = nics_.counters();
  const std::map<NicId, NicAccount> accounts = network_.nic_accounts(now);
  const std::map<NicId, NicTrackers> trackers = network_.trackers_by_nic();
  const std::vector<LinkHealth> links = network_.link_health(now);
  for (NicCounters& counters : nics) {
    if (const auto found = accounts.find(counters.nic); found != accounts.end()) add(counters, found->second);
    if (const auto found = trackers.find(counters.nic); found != trackers.end()) add(counters, found->second);
    add_link(counters, links, now);
    if (storage_ == nullptr) continue;
    const auto also = storage_->counters().find(counters.nic);
    if (also == storage_->counters().end()) continue;
    for (std::size_t place = 0; place < counter_count; ++place) counters.values[place] += also->second.values[place];
  }
  return nics;
}

void CounterSources::add(NicCounters& counters, const NicAccount& account) {
  for (const Counter counter : {Counter::pct_sct_timeouts, Counter::rh_sct_timeouts}) {
    counters.add(counter, account.timeouts.ordered);
  }
  for (const Counter counter : {Counter::pct_spt_timeouts, Counter::rh_spt_timeouts, Counter::rh_spt_timeouts_u}) {
    counters.add(counter, account.timeouts.unordered);
  }
  counters.add(Counter::rh_nacks, account.refusals);
  counters.add(Counter::rh_nack_sequence_error, account.sequence_errors);
  counters.add(Counter::pct_retry_srb_requests, account.sent_again);
  counters.add(Counter::rh_connections_cancelled, account.flows_given_up);
  counters.add(Counter::rh_pkts_cancelled_o, account.ordered_given_up);
  counters.add(Counter::rh_pkts_cancelled_u, account.unordered_given_up);
  for (std::size_t of = 0; of < account.without_room_ps.size(); ++of) {
    counters.add(Counter::hni_tx_paused, request_place(static_cast<TrafficClass>(of)),
                 account.without_room_ps[of] / cycle_ps);
  }
}

void CounterSources::add(NicCounters& counters, const NicTrackers& trackers) {
  counters.add(Counter::pct_conn_sct_open, trackers.connections_opened);
  counters.add(Counter::pct_no_tct_nacks, trackers.target_refusals);
  counters.add(Counter::pct_no_trs_nacks, trackers.result_refusals);
  counters.add(Counter::pct_no_matching_tct, trackers.unmatched_refusals);
}

void CounterSources::add_link(NicCounters& counters, const std::vector<LinkHealth>& links, Instant now) const {
  std::uint64_t signal_ps = now > start_ ? (now - start_).ps : 0;
  std::uint64_t bad = 0;
  if (const LinkHealth* in = of_port(links, port_to(counters.nic))) {
    signal_ps = in->signal_ps;
    bad = in->replays;
    counters.add(Counter::hni_llr_rx_replay_event, in->replays);
  }
  if (const LinkHealth* out = of_port(links, port_of(counters.nic))) {
    counters.add(Counter::hni_llr_tx_replay_event, out->replays);
  }
  const std::uint64_t all = signal_ps / code_word_.ps;
  counters.add(Counter::hni_pcs_uncorrected_cw, bad);
  counters.add(Counter::hni_pcs_good_cw, all - std::min(all, bad));
}

}  // namespace dryfly
