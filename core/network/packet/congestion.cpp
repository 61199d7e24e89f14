#include "core/network/packet/congestion.hpp"

#include <algorithm>
#include <utility>

namespace dryfly::fabric {
namespace {

// A hold that nothing has used for so many of its intervals, and a while, is forgotten.
constexpr std::uint64_t stale_intervals = 4;
constexpr std::uint64_t stale_ps = 20'000'000;
constexpr std::uint64_t reactions_in_epoch = 4;

// What takes so long at the link's rate, at a share of it.
std::uint64_t at_share(std::uint64_t ps, std::uint64_t share_ppm) { return ps * whole_ppm / share_ppm; }

}  // namespace

HotSpots::HotSpots(const FabricSpec& fabric, Links& links)
    : links_(links),
      shares_(fabric.qos.classes),
      on_(fabric.congestion_management),
      hot_ps_(transmission_time(fabric.hot_queue, fabric.rate).ps),
      round_trip_ps_(fabric.congestion_round_trip.ps),
      frame_ps_(links.frame_max_ps()) {}

void HotSpots::share_out(Account& account) const {
  for (std::uint32_t index = 0; index < shares_.size(); ++index) {
    account.classes[index].share_ppm = std::max<std::uint64_t>(share_ppm(account, index), 1);
  }
}

// As the arbiter gives it: a class that is not hot takes what it needs, a hot one of higher priority its ceiling; the
// rest goes by shares, and what is above a ceiling is the others'. The hot ones have at least what is due to them if
// all that the profile has wanted the link.
std::uint64_t HotSpots::share_ppm(const Account& account, std::uint32_t traffic_class) const {
  const ClassShares& own = shares_[traffic_class];
  std::uint32_t contend = 0;  // bits
  std::uint64_t weights = 0;
  std::uint64_t all = 0;
  std::uint64_t taken_ppm = 0;
  for (std::uint32_t index = 0; index < shares_.size(); ++index) {
    const bool is_hot = account.classes[index].hot || index == traffic_class;
    all += shares_[index].fabric_ppm;
    if (!is_hot) {
      taken_ppm += account.classes[index].had_ppm;
    } else if (shares_[index].priority > own.priority) {
      taken_ppm += shares_[index].ceiling_ppm;
    } else if (shares_[index].priority == own.priority) {
      contend |= 1U << index;
      weights += shares_[index].fabric_ppm;
    }
  }
  if (weights == 0) return own.ceiling_ppm;
  std::uint64_t left_ppm = std::max(weights * whole_ppm / all, whole_ppm - std::min(whole_ppm, taken_ppm));
  for (std::uint32_t index = 0; index < shares_.size();) {
    const ClassShares& other = shares_[index];
    if (((contend >> index) & 1) == 0 || left_ppm * other.fabric_ppm <= other.ceiling_ppm * weights) {
      ++index;
      continue;
    }
    if (index == traffic_class) return own.ceiling_ppm;
    contend &= ~(1U << index);
    weights -= other.fabric_ppm;
    left_ppm -= std::min<std::uint64_t>(left_ppm, other.ceiling_ppm);
    index = 0;  // what it leaves may bring one before it to its ceiling
  }
  return left_ppm * own.fabric_ppm / weights;
}

// The table of sources keeps its room: end-points become hot again and again.
void HotSpots::open_account(Port& port) {
  port.hot = accounts_.take();
  Account& account = accounts_[port.hot];
  KeyTable<std::uint64_t> sources = std::move(account.last_epoch_of);
  sources.clear();
  account = Account{};
  account.last_epoch_of = std::move(sources);
  account.epoch_start_ps = links_.now_ps();
  account.epoch_end_ps = account.epoch_start_ps + reactions_in_epoch * round_trip_ps_;
  share_out(account);
}

bool HotSpots::joined(Port& port, const Come& come, std::uint64_t waiting_ps) {
  if (port.hot == none) {
    open_account(port);
  } else {
    accounts_[port.hot].classes[come.traffic_class].waiting_ps = waiting_ps;
    look_back(port);
    if (port.hot == none) return false;
  }
  Account& account = accounts_[port.hot];
  OfClass& own = account.classes[come.traffic_class];
  own.came_ps += come.transmission_ps;
  own.waiting_ps = waiting_ps;
  own.longest_ps = std::max(own.longest_ps, waiting_ps);
  const bool is_hot = at_share(waiting_ps, own.share_ppm) > hot_ps_;
  if (is_hot) {
    const bool was_hot = std::exchange(own.hot, true);
    own.quiet_epochs = 0;
    if (!was_hot) share_out(account);
  }
  const std::uint64_t name = std::uint64_t{come.traffic_class} << 32 | come.source.value;
  std::uint64_t& last_epoch = account.last_epoch_of[name];
  const bool is_new = last_epoch == 0;
  if (last_epoch != account.epoch) ++own.sources;
  last_epoch = account.epoch;
  return is_new && is_hot;
}

void HotSpots::look_back(Port& port) {
  Account& account = accounts_[port.hot];
  if (links_.now_ps() < account.epoch_end_ps) return;
  std::uint64_t sources = 0;
  bool any_hot = false;
  for (OfClass& own : account.classes) {
    if (!own.hot) continue;
    if (at_share(own.longest_ps, own.share_ppm) <= hot_ps_ / 4) ++own.quiet_epochs;
    own.hot = own.contributors() >> std::min(own.quiet_epochs, 31U) != 0;
    any_hot |= own.hot;
    sources += own.contributors();
  }
  if (!any_hot) {
    accounts_.give_back(port.hot);
    port.hot = none;
    return;
  }
  const std::uint64_t epoch_ps = reactions_in_epoch * (round_trip_ps_ + sources * frame_ps_);
  const bool long_ago = links_.now_ps() > account.epoch_end_ps + epoch_ps;
  const std::uint64_t length_ps = std::max<std::uint64_t>(links_.now_ps() - account.epoch_start_ps, 1);
  for (OfClass& own : account.classes) {
    own.sources_before = long_ago ? 0 : own.sources;
    own.sources = 0;
    own.longest_ps = own.waiting_ps;
    own.had_ppm = static_cast<std::uint32_t>(std::min(whole_ppm, own.came_ps * whole_ppm / length_ps));
    own.came_ps = 0;
  }
  account.epoch_start_ps = links_.now_ps();
  account.epoch_end_ps = account.epoch_start_ps + epoch_ps;
  ++account.epoch;
  share_out(account);
}

// The queue settles where the sum of all shares is the rate of the class: at half of what makes it hot. A gap is
// filled in about one reaction, which is as fast as can be without swinging. A backlog is worked off with up to half of
// that rate: a source that waits longer would not notice its end.
std::uint32_t HotSpots::interval_ps(Port& port, std::uint32_t traffic_class, std::uint64_t waiting_ps) {
  if (port.hot == none) return 0;
  accounts_[port.hot].classes[traffic_class].waiting_ps = waiting_ps;
  look_back(port);
  if (port.hot == none) return 0;
  const Account& account = accounts_[port.hot];
  const OfClass& own = account.classes[traffic_class];
  if (!own.hot) return 0;
  const std::uint64_t fair_ps = at_share(own.contributors() * frame_ps_, own.share_ppm);
  const std::uint64_t reaction = round_trip_ps_ + fair_ps;  // the time in which the fabric reacts to what is told
  const std::uint64_t settled_ps = std::min(hot_ps_ / 2, reaction / 2);
  const std::uint64_t stretched = std::min(2 * reaction, reaction + at_share(waiting_ps, own.share_ppm) - settled_ps);
  const std::uint64_t interval_ps = (fair_ps * stretched / reaction) >> std::min(own.quiet_epochs, 31U);
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
