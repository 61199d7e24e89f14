// The copies of payloads that a rank has been told to make. It makes them in the order in which its ring has them and
// counts them; those that the conductor makes in its place it never sees, so its count lags behind by these. What a NIC
// says can come into the ring behind what memory says later: until then an order has a number, and no place among them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/unit/check.hpp"

namespace dryfly {

class CopyOrders {
 public:
  // The number of a new one.
  std::uint64_t add() {
    kept_.insert(++added_);
    return added_;
  }
  // Its event goes to the rank now, which has counted so far.
  void show(std::uint64_t number, std::uint64_t counted) {
    DRYFLY_CHECK(kept_.erase(number) == 1);
    std::erase_if(moved_, [&](const auto& each) { return counted >= count_up_to(std::max(each.first, each.second)); });
    if (++shown_ != number) moved_.emplace(number, shown_);
  }
  // Its event is for a process that has ended: nobody waits for it.
  void drop(std::uint64_t number, std::uint64_t counted) {
    show(number, counted);
    take_over(number);
  }
  // The conductor has made this one. Numbers come in any order, each once.
  void take_over(std::uint64_t number) {
    const std::uint64_t place = place_of(number);
    DRYFLY_CHECK(place != 0 && !is_taken_over(place));
    taken_.insert(std::upper_bound(taken_.begin(), taken_.end(), place), place);
  }
  // `counted`: what the rank has counted so far.
  bool is_made(std::uint64_t number, std::uint64_t counted) const {
    const std::uint64_t place = place_of(number);
    return place != 0 && (is_taken_over(place) || counted >= count_up_to(place));
  }
  // What the rank has counted when it has made this one and all before; of one that it has not been told of, when it
  // has made one that it has not been told of either.
  std::uint64_t count_at(std::uint64_t number) const {
    const std::uint64_t place = place_of(number);
    return place != 0 ? count_up_to(place) : count_of_all() + 1;
  }
  // What it counts when all are made that it has been told of.
  std::uint64_t count_of_all() const { return shown_ - taken_.size(); }

 private:
  // Among those that the rank has been told of, from one on; 0: not yet.
  std::uint64_t place_of(std::uint64_t number) const {
    if (kept_.contains(number)) return 0;
    const auto moved = moved_.find(number);
    return moved == moved_.end() ? number : moved->second;
  }
  std::uint64_t count_up_to(std::uint64_t place) const {
    const auto later = std::upper_bound(taken_.begin(), taken_.end(), place);
    return place - static_cast<std::uint64_t>(later - taken_.begin());
  }
  bool is_taken_over(std::uint64_t place) const { return std::binary_search(taken_.begin(), taken_.end(), place); }

  std::uint64_t added_ = 0;
  std::uint64_t shown_ = 0;
  std::set<std::uint64_t> kept_;                  // numbers without a place
  std::map<std::uint64_t, std::uint64_t> moved_;  // places that are not their numbers, by number
  std::vector<std::uint64_t> taken_;              // places, ascending
};

}  // namespace dryfly
