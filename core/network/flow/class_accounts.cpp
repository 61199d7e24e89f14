#include "core/network/flow/class_accounts.hpp"

#include <algorithm>
#include <bit>

#include "core/network/flow/pipes.hpp"

namespace dryfly::flow {
namespace {

constexpr double least = 1e-3;      // of a link
constexpr double nothing_ps = 0.5;  // of work
constexpr double forgotten = 1e-3;  // of a link
constexpr double nearly_share = 0.98;

}  // namespace

ClassAccounts::Account& ClassAccounts::account(const At& at) {
  std::uint32_t& number = number_of_[at.number];
  if (number == fabric::none) {
    number = static_cast<std::uint32_t>(accounts_.size());
    Account& begun = accounts_.emplace_back();
    begun.at_ps = at.now_ps;
    const std::uint64_t busy_ps = at.pipe.free_ps > at.now_ps ? at.pipe.free_ps - at.now_ps : 0;
    begun.work_ps[first_class_] = static_cast<double>(busy_ps) * std::max(at.pipe.capacity - at.pipe.share, least);
    begun.came_ps[first_class_] = at.pipe.shorts;
    begun.came_at_ps = at.pipe.shorts_ps;
    begun.streams[first_class_] = at.pipe.streams;
    begun.share[first_class_] = at.pipe.share;
  }
  return accounts_[number];
}

void ClassAccounts::change(std::uint32_t pipe, std::uint32_t traffic_class, int streams, double share) {
  Account& own = account(at(pipe));
  carry(at(pipe), own);
  own.streams[traffic_class] += static_cast<std::uint32_t>(streams);
  own.share[traffic_class] = own.streams[traffic_class] == 0 ? 0 : std::max(0.0, own.share[traffic_class] + share);
}

void ClassAccounts::come(std::uint32_t number, std::uint32_t traffic_class, std::uint64_t transmission_ps) {
  const At here = at(number);
  Account& own = account(here);
  carry(here, own);
  const auto work_ps = static_cast<double>(transmission_ps);
  const double left = Pipes::remembered(static_cast<double>(here.now_ps - own.came_at_ps));
  for (double& came_ps : own.came_ps) came_ps *= left;
  own.came_ps[traffic_class] += work_ps;
  own.came_at_ps = here.now_ps;
  if (!at_nic(here)) {
    own.work_ps[traffic_class] += work_ps;
    return;
  }
  // A NIC sends one short transfer after the other, in turns among classes (Shorts).
  Pipe& pipe = pipes_[number];
  const double rate = for_shorts(here, own, traffic_class);
  pipe.free_ps = std::max(pipe.free_ps, here.now_ps) + static_cast<std::uint64_t>(work_ps / rate);
}

std::uint32_t ClassAccounts::streaming(const Account& account) const {
  std::uint32_t classes = 0;
  for (std::uint32_t index = 0; index < profile_.classes.size(); ++index) {
    if (account.streams[index] > 0) classes |= 1U << index;
  }
  return classes;
}

OfClasses ClassAccounts::lately(const At& at, const Account& account) const {
  const double left = Pipes::remembered(static_cast<double>(at.now_ps - account.came_at_ps));
  OfClasses rates{};
  for (std::uint32_t index = 0; index < profile_.classes.size(); ++index) {
    rates[index] = account.came_ps[index] * left / Pipes::look_again_ps;
    if (rates[index] < forgotten) rates[index] = 0;
  }
  return rates;
}

// As turn() of pipes.cpp has it; but where no source is held back, the last switch too sends first what came first.
double ClassAccounts::turn(const At& at, const Account& account, std::uint32_t traffic_class) const {
  const std::uint32_t streams = account.streams[traffic_class];
  if (streams == 0) return 1;
  const bool in_order = at.pipe.between_switches || (!holds_back_ && !at_nic(at));
  return in_order ? 0.5 : 1.0 / (1.0 + streams);
}

OfClasses ClassAccounts::rates(const At& at, const Account& account, std::uint32_t classes, OfClasses wanted) const {
  const double capacity = at.pipe.capacity;
  const std::uint32_t streams = streaming(account);
  each_class(streams, [&](std::uint32_t index) { wanted[index] = capacity * ceiling(profile_, index); });
  OfClasses found = parts_of(profile_, classes | streams, capacity, wanted, at_nic(at));
  double sum = 0;
  each_class(classes, [&](std::uint32_t index) { sum += found[index] *= turn(at, account, index); });
  // What streams leave idle where the pipe is full is not idle: they have it while no short ones are there.
  const double idle = at.pipe.full && streams != 0 ? 0 : capacity - at.pipe.share;
  const double stretch = sum > 0 && idle > sum ? idle / sum : 1;
  OfClasses stretched{};
  each_class(classes, [&](std::uint32_t index) {
    stretched[index] = std::max(least, std::min(found[index] * stretch, capacity * ceiling(profile_, index)));
  });
  return stretched;
}

void ClassAccounts::carry(const At& at, Account& account) const {
  auto left_ps = static_cast<double>(at.now_ps - account.at_ps);
  account.at_ps = at.now_ps;
  while (left_ps > 0) {
    std::uint32_t waiting = 0;
    OfClasses wanted{};
    for (std::uint32_t index = 0; index < profile_.classes.size(); ++index) {
      if (account.work_ps[index] <= 0) continue;
      waiting |= 1U << index;
      wanted[index] = at.pipe.capacity * ceiling(profile_, index);
    }
    if (waiting == 0) return;
    const OfClasses rate = rates(at, account, waiting, wanted);
    double step_ps = left_ps;
    each_class(waiting,
               [&](std::uint32_t index) { step_ps = std::min(step_ps, account.work_ps[index] / rate[index]); });
    each_class(waiting, [&](std::uint32_t index) {
      account.work_ps[index] -= rate[index] * step_ps;
      if (account.work_ps[index] < nothing_ps) account.work_ps[index] = 0;
    });
    left_ps -= step_ps;
  }
}

OfClasses ClassAccounts::rates_lately(const At& at, const Account& account, std::uint32_t traffic_class) const {
  OfClasses wanted = lately(at, account);
  std::uint32_t classes = 1U << traffic_class;
  for (std::uint32_t index = 0; index < profile_.classes.size(); ++index) {
    if (wanted[index] > 0) classes |= 1U << index;
    wanted[index] = std::min(wanted[index], at.pipe.capacity * ceiling(profile_, index));
  }
  wanted[traffic_class] = at.pipe.capacity * ceiling(profile_, traffic_class);
  return rates(at, account, classes, wanted);
}

std::uint64_t ClassAccounts::wait_ps(std::uint32_t pipe, std::uint32_t traffic_class) {
  const At here = at(pipe);
  if (at_nic(here)) return all_ps(pipe);
  Account& own = account(here);
  carry(here, own);
  if (own.work_ps[traffic_class] <= 0) {
    // What is first of its class waits for the rest of a packet of another, in the mean half of it.
    const bool is_busy = std::ranges::any_of(own.work_ps, [](double work_ps) { return work_ps > 0; });
    return is_busy ? profile_.frame_max_ps / 2 : 0;
  }
  const double rate = rates_lately(here, own, traffic_class)[traffic_class];
  return static_cast<std::uint64_t>(own.work_ps[traffic_class] / rate);
}

// They leave one behind the other, whichever class has the turn, and ceilings are the arbiter's.
double ClassAccounts::for_shorts(const At& at, const Account& account, std::uint32_t traffic_class) const {
  double sum = 0;
  for (const double rate : rates_lately(at, account, traffic_class)) sum += rate;
  return std::max(least, std::min(at.pipe.capacity, std::max(sum, at.pipe.capacity - at.pipe.share)));
}

std::uint64_t ClassAccounts::all_ps(std::uint32_t pipe) const {
  const At here = at(pipe);
  const std::uint32_t number = number_of_[pipe];
  if (number == fabric::none || at_nic(here)) {
    return here.pipe.free_ps > here.now_ps ? here.pipe.free_ps - here.now_ps : 0;
  }
  double work_ps = 0;
  for (const double of_class : accounts_[number].work_ps) work_ps += of_class;
  const double busy_ps = work_ps / std::max(here.pipe.capacity - here.pipe.share, least);
  const auto passed_ps = static_cast<double>(here.now_ps - accounts_[number].at_ps);
  return busy_ps > passed_ps ? static_cast<std::uint64_t>(busy_ps - passed_ps) : 0;
}

double ClassAccounts::left(std::uint32_t pipe) {
  const At here = at(pipe);
  const Account& own = account(here);
  const OfClasses came = lately(here, own);
  OfClasses wanted = came;
  std::uint32_t classes = streaming(own);
  for (std::uint32_t index = 0; index < profile_.classes.size(); ++index) {
    if (wanted[index] > 0) classes |= 1U << index;
    if (own.streams[index] > 0) wanted[index] = here.pipe.capacity;
    wanted[index] = std::min(wanted[index], here.pipe.capacity * ceiling(profile_, index));
  }
  const OfClasses parts = parts_of(profile_, classes, here.pipe.capacity, wanted, at_nic(here));
  double left = here.pipe.capacity;
  for (std::uint32_t index = 0; index < profile_.classes.size(); ++index) {
    left -= std::min(came[index], parts[index] * turn(here, own, index));
  }
  return std::max(0.0, left);
}

bool ClassAccounts::is_within_share(const At& at, const Account& account, std::uint32_t traffic_class) const {
  const OfClasses came = lately(at, account);
  const std::uint32_t priority = profile_.classes[traffic_class].priority;
  double weights = 0;
  bool goes_first = true;
  for (std::uint32_t index = 0; index < profile_.classes.size(); ++index) {
    if (index != traffic_class && account.streams[index] == 0 && came[index] == 0) continue;
    if (profile_.classes[index].priority > priority) return false;
    if (profile_.classes[index].priority < priority) continue;
    goes_first &= index == traffic_class;
    weights += weight(profile_, index, at_nic(at));
  }
  const double part =
      goes_first ? ceiling(profile_, traffic_class) : weight(profile_, traffic_class, at_nic(at)) / weights;
  return account.share[traffic_class] + came[traffic_class] < nearly_share * part * at.pipe.capacity;
}

// It waits for its own, and for a packet of each other class.
std::uint64_t ClassAccounts::among_streams_ps(std::uint32_t pipe, std::uint32_t traffic_class) const {
  const At here = at(pipe);
  if (at_nic(here) || number_of_[pipe] == fabric::none) return never.ps;
  const Account& own = accounts_[number_of_[pipe]];
  const int others = std::popcount(streaming(own) & ~(1U << traffic_class));
  if (others == 0 || !is_within_share(here, own, traffic_class)) return never.ps;
  const double used = std::min(nearly_share, own.share[traffic_class] / here.pipe.capacity);
  const auto frame_ps = static_cast<double>(profile_.frame_max_ps);
  return static_cast<std::uint64_t>((random_packets(used) + others) * frame_ps);
}

}  // namespace dryfly::flow
