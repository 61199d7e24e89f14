// Shares of links: what each of many flows gets when all are given as much as possible and none can have more but by
// taking it from one that has less (max-min fairness, weighted), by progressive filling (Bertsekas and Gallager, "Data
// Networks", 1992, section 6.5): the rates of all grow together until a link is full, its flows stop there, the others
// grow on.
//
// Flows that are alike are a class, solved as one: the cost is by classes and their crossings, whatever their counts. A
// flow may have several ways, in an order of preference: it grows on the first until a link of this is full, then on
// the next, and keeps what it has on those before; it stops when a link of every way is full, or one that all of its
// ways share. Such ordered tunnels are filled in the same manner by B4 (Jain et al., SIGCOMM 2013, section 5).
//
// Leaves out: time. Whoever uses it says when what changes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/network/flow/levels.hpp"

namespace dryfly::flow {

class Shares {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  // A link counts as full when that part of the level at which it will be is missing. Links that fill at nearly the
  // same level are then found at once, which takes less time.
  explicit Shares(double tolerance = 0) : tolerance_(tolerance) {}

  struct Crossing {
    std::uint32_t link = 0;
    double times = 1;
  };

  // Forgets all, but keeps the memory.
  void clear();
  // Returns its number, from 0 on. Capacities and rates have whatever unit the caller likes.
  std::uint32_t add_link(double capacity);
  // `count` flows that are alike. What follows is about these, until the next class: the links that all of their bytes
  // cross, then way by way the links of each. Returns the number of the class, from 0 on.
  std::uint32_t add_class(double count, double weight = 1, double limit = unlimited);
  // One flow of the class crosses the link so many times, or with that fraction of its bytes.
  void cross(std::uint32_t link, double times = 1);
  void cross(std::span<const Crossing> crossings);
  // What is crossed from here on is another way, preferred less than those before. While it is on this way a flow grows
  // so much faster or slower than others of its weight.
  void add_way(double speed = 1);

  // A class that has neither a link nor a limit is the caller's bug.
  void solve();

  // Of one flow of the class: all in all, and on its ways, the first being 0.
  double rate(std::uint32_t flows) const { return classes_[flows].rate; }
  double rate(std::uint32_t flows, std::uint32_t way) const { return rates_[classes_[flows].first_part + 1 + way]; }
  // Of all that cross it.
  double load(std::uint32_t link) const { return links_[link].used; }
  bool full(std::uint32_t link) const { return full_[link] != 0; }
  std::uint32_t links() const { return static_cast<std::uint32_t>(links_.size()); }
  std::uint32_t classes() const { return static_cast<std::uint32_t>(classes_.size()); }

 private:
  struct Link {
    double capacity = 0;
    double used = 0;    // at `level`
    double growth = 0;  // of it, with the level of those that grow
    double level = 0;
    std::uint32_t growing = 0;     // crossings of those
    std::uint32_t first_user = 0;  // in users_
  };
  struct Class {
    double count = 1;
    double weight = 1;
    double limit = unlimited;
    double rate = 0;
    double changed = 0;            // the level at which its rate was as said
    std::uint32_t first_part = 0;  // in parts_: what is always crossed, then the ways
    std::uint32_t parts = 1;
    std::uint32_t part = 0;  // the current way; 0: there are none
    bool grows = true;
    bool may_reach_limit = false;
  };
  struct User {
    std::uint32_t flows = 0;
    std::uint32_t part = 0;
  };

  void find_users();
  void grow_all();
  // What it crosses in that part grows by its flows, or no more.
  void change_growth(const Class& flows, std::uint32_t part, double sign);
  void fill(std::uint32_t link);
  void look_at_limit(std::uint32_t flows);
  // Of the ways behind the one that it is on; all of them: none is open.
  std::uint32_t next_way(const Class& flows) const;
  void take_next_way(std::uint32_t flows);
  void stop(std::uint32_t flows);
  // What it has at `level_`.
  void settle(Class& flows);
  double speed(const Class& flows) const { return flows.weight * speeds_[flows.first_part + flows.part]; }
  bool open(std::uint32_t part) const;
  bool may_reach_limit(const Class& flows) const;
  double full_at(const Link& link) const {
    if (link.growing == 0) return unlimited;
    return link.level + std::max(0.0, link.capacity - link.used) / link.growth;
  }
  void advance(Link& link) const {
    link.used += link.growth * (level_ - link.level);
    link.level = level_;
  }
  // Where it was expected sooner that level will look again.
  void expect(std::uint32_t link) { next_.lower(link, full_at(links_[link])); }
  std::uint32_t end_of(std::uint32_t part) const {
    return part + std::size_t{1} < parts_.size() ? parts_[part + 1] : static_cast<std::uint32_t>(crossings_.size());
  }

  std::vector<Link> links_;
  std::vector<std::uint8_t> full_;  // by link
  std::vector<Class> classes_;
  std::vector<std::uint32_t> parts_;  // of all classes: the first crossing of each
  std::vector<double> rates_;         // of each part
  std::vector<double> speeds_;        // of each part
  std::vector<Crossing> crossings_;
  std::vector<User> users_;  // by link
  Levels next_;              // where links fill up and, numbered behind them, classes come to their limits
  double level_ = 0;
  std::uint32_t growing_ = 0;  // classes
  double tolerance_;
};

}  // namespace dryfly::flow
