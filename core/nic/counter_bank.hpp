// The counters of all NICs that have had an end-point. Times, which the hardware counts in cycles, are kept exactly and
// counted when they are over, or as far as they have come when somebody looks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/nic/counters.hpp"
#include "core/unit/check.hpp"

namespace dryfly::nic {

class CounterBank {
 public:
  explicit CounterBank(const Engine& engine) : engine_(engine) {}
  Instant now() const { return engine_.now(); }

  // Where those of this NIC are, from now on.
  std::uint32_t open(NicId nic) {
    if (nic.value >= place_of_.size()) place_of_.resize(nic.value + std::size_t{1}, nowhere);
    std::uint32_t& place = place_of_[nic.value];
    if (place == nowhere) {
      place = static_cast<std::uint32_t>(counters_.size());
      counters_.push_back({.nic = nic});
      times_.emplace_back();
    }
    return place;
  }
  NicCounters& at(std::uint32_t place) { return counters_[place]; }
  NicCounters& of(NicId nic) { return counters_[place_of(nic)]; }
  // Of the NIC at that place; the counter is one of time.
  void spend(std::uint32_t place, Counter counter, Duration time) { times_[place][timed(counter)] += time.ps; }
  // The NIC takes no messages of this class from now on, or takes them again.
  void pause(NicId nic, TrafficClass traffic_class) { paused_since_.try_emplace({nic, traffic_class}, engine_.now()); }
  void resume(NicId nic, TrafficClass traffic_class) {
    const auto paused = paused_since_.find({nic, traffic_class});
    times_[place_of(nic)][request_place(traffic_class)] += (engine_.now() - paused->second).ps;
    paused_since_.erase(paused);
  }
  // In the order of their ids, as of now.
  std::vector<NicCounters> sorted() const {
    std::vector<Times> times = times_;
    for (const auto& [paused, since] : paused_since_) {
      times[place_of(paused.first)][request_place(paused.second)] += (engine_.now() - since).ps;
    }
    std::vector<NicCounters> sorted;
    for (const std::uint32_t place : place_of_) {
      if (place == nowhere) continue;
      NicCounters& counters = sorted.emplace_back(counters_[place]);
      for (std::size_t n = 0; n < timed_counters; ++n) counters.add(first_timed, n, times[place][n] / cycle_ps);
    }
    return sorted;
  }
  void restart() {
    for (NicCounters& counters : counters_) counters.values = {};
    for (Times& times : times_) times = {};
    for (auto& [paused, since] : paused_since_) since = engine_.now();
  }

 private:
  static constexpr std::uint32_t nowhere = UINT32_MAX;
  static constexpr Counter first_timed = Counter::hni_rx_paused;
  static constexpr std::size_t timed_counters =
      static_cast<std::size_t>(Counter::parbs_tarb_pi_non_posted_blocked_cnt) -
      static_cast<std::size_t>(Counter::hni_rx_paused) + 1;
  static constexpr std::size_t timed(Counter counter) {
    return static_cast<std::size_t>(counter) - static_cast<std::size_t>(first_timed);
  }
  using Times = std::array<std::uint64_t, timed_counters>;  // picoseconds

  std::uint32_t place_of(NicId nic) const {
    DRYFLY_CHECK(nic.value < place_of_.size() && place_of_[nic.value] != nowhere);
    return place_of_[nic.value];
  }

  const Engine& engine_;
  std::vector<NicCounters> counters_;
  std::vector<Times> times_;
  std::vector<std::uint32_t> place_of_;  // by NIC
  std::map<std::pair<NicId, TrafficClass>, Instant> paused_since_;
};

}  // namespace dryfly::nic
