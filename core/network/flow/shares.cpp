#include "core/network/flow/shares.hpp"

#include <algorithm>

#include "core/unit/check.hpp"

namespace dryfly::flow {
namespace {

constexpr double rounding = 1e-12;

}  // namespace

void Shares::clear() {
  links_.clear();
  classes_.clear();
  parts_.clear();
  speeds_.clear();
  crossings_.clear();
}

std::uint32_t Shares::add_link(double capacity) {
  Link link;
  link.capacity = capacity;
  links_.push_back(link);
  return links() - 1;
}

std::uint32_t Shares::add_class(double count, double weight, double limit) {
  DRYFLY_CHECK(count > 0 && weight > 0 && limit >= 0);
  Class flows;
  flows.count = count;
  flows.weight = weight;
  flows.limit = limit;
  flows.first_part = static_cast<std::uint32_t>(parts_.size());
  classes_.push_back(flows);
  parts_.push_back(static_cast<std::uint32_t>(crossings_.size()));
  speeds_.push_back(1);
  return classes() - 1;
}

void Shares::cross(std::uint32_t link, double times) {
  if (times > 0) crossings_.push_back({link, times});
}

void Shares::cross(std::span<const Crossing> crossings) {
  crossings_.insert(crossings_.end(), crossings.begin(), crossings.end());
}

void Shares::add_way(double speed) {
  DRYFLY_CHECK(speed > 0);
  parts_.push_back(static_cast<std::uint32_t>(crossings_.size()));
  speeds_.push_back(speed);
  ++classes_.back().parts;
}

// By link, those that cross it, in the order of the classes.
void Shares::find_users() {
  for (Link& link : links_) link.first_user = 0;
  for (const Crossing& crossing : crossings_) ++links_[crossing.link].first_user;
  std::uint32_t end = 0;
  for (Link& link : links_) end = link.first_user += end;
  users_.resize(crossings_.size());
  for (std::uint32_t number = classes(); number-- > 0;) {
    const Class& flows = classes_[number];
    for (std::uint32_t part = flows.parts; part-- > 0;) {
      const std::uint32_t place = flows.first_part + part;
      for (std::size_t at = end_of(place); at-- > parts_[place];) {
        users_[--links_[crossings_[at].link].first_user] = {number, part};
      }
    }
  }
}

void Shares::change_growth(const Class& flows, std::uint32_t part, double sign) {
  const std::uint32_t place = flows.first_part + part;
  for (std::size_t at = parts_[place], end = end_of(place); at < end; ++at) {
    Link& link = links_[crossings_[at].link];
    advance(link);
    link.growth += sign * flows.count * speed(flows) * crossings_[at].times;
    link.growing += sign > 0 ? 1 : -1U;
    if (link.growing == 0) link.growth = 0;  // and not what rounding leaves
  }
}

bool Shares::open(std::uint32_t place) const {
  return std::none_of(crossings_.begin() + static_cast<std::ptrdiff_t>(parts_[place]),
                      crossings_.begin() + static_cast<std::ptrdiff_t>(end_of(place)),
                      [&](const Crossing& crossing) { return full_[crossing.link] != 0; });
}

// None that always crosses a link which has no more than its limit.
bool Shares::may_reach_limit(const Class& flows) const {
  if (flows.limit == unlimited) return false;
  return std::none_of(crossings_.begin() + static_cast<std::ptrdiff_t>(parts_[flows.first_part]),
                      crossings_.begin() + static_cast<std::ptrdiff_t>(end_of(flows.first_part)),
                      [&](const Crossing& crossing) {
                        return links_[crossing.link].capacity <= flows.limit * flows.count * crossing.times;
                      });
}

void Shares::grow_all() {
  next_.clear(links() + classes());
  level_ = 0;
  growing_ = 0;
  rates_.assign(parts_.size(), 0);
  for (Link& link : links_) {
    link.used = link.growth = link.level = 0;
    link.growing = 0;
  }
  full_.clear();
  for (const Link& link : links_) full_.push_back(link.capacity <= 0 ? 1 : 0);
  for (std::uint32_t number = 0; number < classes(); ++number) {
    Class& flows = classes_[number];
    flows.rate = flows.changed = 0;
    flows.part = 0;
    flows.may_reach_limit = may_reach_limit(flows);
    flows.grows = open(flows.first_part);
    if (flows.grows && flows.parts > 1) {
      flows.part = next_way(flows);
      flows.grows = flows.part < flows.parts;
    }
    if (!flows.grows) continue;
    ++growing_;
    change_growth(flows, 0, 1);
    if (flows.part > 0) change_growth(flows, flows.part, 1);
    look_at_limit(number);
  }
  // Growth has been summed, and is looked at once for each link.
  for (std::uint32_t link = 0; link < links(); ++link) expect(link);
}

std::uint32_t Shares::next_way(const Class& flows) const {
  std::uint32_t part = flows.part + 1;
  while (part < flows.parts && !open(flows.first_part + part)) ++part;
  return part;
}

void Shares::look_at_limit(std::uint32_t number) {
  const Class& flows = classes_[number];
  if (!flows.may_reach_limit) return;
  next_.lower(links() + number, flows.changed + std::max(0.0, flows.limit - flows.rate) / speed(flows));
}

void Shares::solve() {
  find_users();
  grow_all();
  while (growing_ > 0 && !next_.empty()) {
    const auto [at, which] = next_.first();
    if (which >= links()) {
      Class& flows = classes_[which - links()];
      if (!flows.grows) {
        next_.take_first();
        continue;
      }
      // Since it was put there the class has become slower.
      const double later = flows.changed + std::max(0.0, flows.limit - flows.rate) / speed(flows);
      if (later > at * (1 + rounding)) {
        next_.put_off_first(later);
        continue;
      }
      next_.take_first();
      level_ = std::max(level_, at);
      stop(which - links());
      flows.rate = flows.limit;
      continue;
    }
    // Since it was put there some have stopped: it fills later.
    const double later = full_at(links_[which]);
    if (later > at * (1 + rounding + tolerance_)) {
      next_.put_off_first(later);
      continue;
    }
    next_.take_first();
    level_ = std::max(level_, at);
    fill(which);
  }
  for (const Class& flows : classes_) DRYFLY_CHECK(!flows.grows);
  for (Link& link : links_) advance(link);
}

// Whom it stops, it stops on the way that they are on: some have others. Where these begin more grows.
void Shares::fill(std::uint32_t number) {
  advance(links_[number]);
  full_[number] = 1;
  const std::size_t end = number + std::size_t{1} < links_.size() ? links_[number + 1].first_user : users_.size();
  for (std::size_t at = links_[number].first_user; at < end; ++at) {
    const User user = users_[at];
    const Class& flows = classes_[user.flows];
    if (!flows.grows || (user.part != 0 && user.part != flows.part)) continue;
    if (user.part == 0) {
      stop(user.flows);
    } else {
      take_next_way(user.flows);
    }
  }
}

void Shares::settle(Class& flows) {
  const double more = speed(flows) * (level_ - flows.changed);
  flows.rate += more;
  flows.changed = level_;
  if (flows.part > 0) rates_[flows.first_part + flows.part] += more;
}

void Shares::stop(std::uint32_t number) {
  Class& flows = classes_[number];
  settle(flows);
  flows.grows = false;
  --growing_;
  change_growth(flows, 0, -1);
  if (flows.part > 0) change_growth(flows, flows.part, -1);
}

// What all ways share goes on growing as it did, unless the next is slower or faster.
void Shares::take_next_way(std::uint32_t number) {
  Class& flows = classes_[number];
  const std::uint32_t next = next_way(flows);
  if (next == flows.parts) return stop(number);
  const auto expect_part = [&](std::uint32_t place) {
    for (std::size_t at = parts_[place], end = end_of(place); at < end; ++at) expect(crossings_[at].link);
  };
  settle(flows);
  change_growth(flows, flows.part, -1);
  if (speeds_[flows.first_part + next] == speeds_[flows.first_part + flows.part]) {
    flows.part = next;
  } else {
    change_growth(flows, 0, -1);
    flows.part = next;
    change_growth(flows, 0, 1);
    expect_part(flows.first_part);
    look_at_limit(number);
  }
  change_growth(flows, flows.part, 1);
  expect_part(flows.first_part + flows.part);
}

}  // namespace dryfly::flow
