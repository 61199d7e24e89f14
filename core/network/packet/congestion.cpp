#include "core/network/packet/congestion.hpp"

#include <algorithm>

namespace dryfly::fabric {
namespace {

// A hold that nothing has used for so many of its intervals, and a while, is forgotten.
constexpr std::uint64_t stale_intervals = 4;
constexpr std::uint64_t stale_ps = 20'000'000;
constexpr std::uint64_t reactions_in_epoch = 4;

}  // namespace

HotSpots::HotSpots(const FabricSpec& fabric, Links& links)
    : links_(links),
      on_(fabric.congestion_management),
      hot_ps_(transmission_time(fabric.hot_queue, fabric.rate).ps),
      round_trip_ps_(fabric.congestion_round_trip.ps),
      frame_ps_(links.frame_max_ps()) {}

std::uint64_t HotSpots::contributors(const Account& account) const {
  return std::max({account.sources, account.sources_before, 1U});
}

// The table of sources keeps its room: end-points become hot again and again.
void HotSpots::open_account(Port& port) {
  port.hot = accounts_.take();
  Account& account = accounts_[port.hot];
  KeyTable<std::uint64_t> sources = std::move(account.last_epoch_of);
  sources.clear();
  account = Account{};
  account.last_epoch_of = std::move(sources);
  account.epoch_end_ps = links_.now_ps() + reactions_in_epoch * round_trip_ps_;
}

bool HotSpots::joined(Port& port, NicId source) {
  if (port.hot == none) {
    open_account(port);
  } else {
    look_back(port);
    if (port.hot == none) return false;
  }
  Account& account = accounts_[port.hot];
  account.longest_ps = std::max(account.longest_ps, port.waiting_ps);
  if (port.waiting_ps > hot_ps_) account.quiet_epochs = 0;
  std::uint64_t& last_epoch = account.last_epoch_of[source.value];
  const bool is_new = last_epoch == 0;
  if (last_epoch != account.epoch) ++account.sources;
  last_epoch = account.epoch;
  return is_new && port.waiting_ps > hot_ps_;
}

void HotSpots::look_back(Port& port) {
  Account& account = accounts_[port.hot];
  if (links_.now_ps() < account.epoch_end_ps) return;
  if (account.longest_ps <= hot_ps_ / 4) ++account.quiet_epochs;
  if (contributors(account) >> std::min(account.quiet_epochs, 31U) == 0) {
    accounts_.give_back(port.hot);
    port.hot = none;
    return;
  }
  const std::uint64_t epoch_ps = reactions_in_epoch * reaction_ps(account);
  const bool long_ago = links_.now_ps() > account.epoch_end_ps + epoch_ps;
  account.sources_before = long_ago ? 0 : account.sources;
  account.sources = 0;
  account.longest_ps = port.waiting_ps;
  account.epoch_end_ps = links_.now_ps() + epoch_ps;
  ++account.epoch;
}

// The queue settles where the sum of all shares is the link's rate: at half of what makes an end-point hot. A gap is
// filled in about one reaction, which is as fast as can be without swinging. A backlog is worked off with up to half of
// the link's rate: a source that waits longer would not notice its end.
std::uint32_t HotSpots::interval_ps(Port& port) {
  if (port.hot == none) return 0;
  look_back(port);
  if (port.hot == none) return 0;
  const Account& account = accounts_[port.hot];
  const std::uint64_t reaction = reaction_ps(account);
  const std::uint64_t fair_ps = contributors(account) * frame_ps_;
  const std::uint64_t settled_ps = std::min(hot_ps_ / 2, reaction / 2);
  const std::uint64_t stretched = std::min(2 * reaction, reaction + port.waiting_ps - settled_ps);
  const std::uint64_t interval_ps = (fair_ps * stretched / reaction) >> std::min(account.quiet_epochs, 31U);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(interval_ps, 1, none));
}

std::uint64_t Holds::tell(Hold& hold, std::uint32_t interval_ps, std::uint64_t now_ps) const {
  hold.interval_ps = interval_ps;
  return arm(hold, now_ps);
}

std::uint32_t Holds::end(const Hold& hold) {
  const std::uint32_t first = hold.first;
  holds_.erase(hold);
  return first;
}

bool Holds::is_stale(const Hold& hold, std::uint64_t now_ps) const {
  const std::uint64_t stale_at_ps = hold.next_ps + stale_intervals * hold.interval_ps + stale_ps;
  return hold.first == none && hold.outstanding == 0 && stale_at_ps < now_ps;
}

std::uint64_t Holds::park(Hold& hold, std::uint32_t index, std::uint64_t now_ps) {
  transfers_[index].next_turn = none;
  if (hold.first == none) {
    hold.first = index;
  } else {
    transfers_[hold.last].next_turn = index;
  }
  hold.last = index;
  return arm(hold, now_ps);
}

// An event for the first in line, when only the interval keeps it; an acknowledgement comes to what is outstanding.
std::uint64_t Holds::arm(Hold& hold, std::uint64_t now_ps) const {
  const std::uint64_t at_ps = std::max(hold.next_ps, now_ps);
  if (hold.first == none || hold.wake_ps != never.ps || !may_send(hold, at_ps)) return never.ps;
  hold.wake_ps = at_ps;
  return at_ps;
}

std::uint64_t Holds::sent(Hold& hold, std::uint32_t transmission_ps, std::uint64_t now_ps) const {
  ++hold.outstanding;
  hold.next_ps = now_ps + hold.interval_ps * transmission_ps / frame_ps_;
  return arm(hold, now_ps);
}

Holds::Over Holds::over(const Pair& pair, std::uint64_t now_ps) {
  Hold* hold = find(pair);
  if (hold == nullptr || hold->wake_ps != now_ps) return {};
  hold->wake_ps = never.ps;
  if (hold->first == none) return {};
  if (!may_send(*hold, now_ps)) return {none, arm(*hold, now_ps)};
  const std::uint32_t first = hold->first;
  hold->first = transfers_[first].next_turn;
  return {first, never.ps};
}

}  // namespace dryfly::fabric
