// Detours of a core: intervals in which the operating system has it and its rank does not run (docs/model/noise.md).
// They lie on the core's virtual time line, where the run's seed has put them, so what they take from a rank depends on
// the instants at which it works, and never on how often it polls or looks. Real ranks have them, and those of patterns
// without processes.
//
// Detours that overlap count once. Left out: what a detour costs beyond its length (cold caches), and a process that
// the system moves to another core.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/noise/settings.hpp"

namespace dryfly {

class Noise {
 public:
  // From the instant `origin_ps` on, at which virtual time began. What is taken is counted in `taken`.
  void begin(const NoiseSettings& settings, std::uint32_t node, std::uint32_t core, std::uint64_t origin_ps,
             NoiseTaken& taken);
  // Virtual time is over, and the run's memory may go.
  void end() { settings_ = nullptr; }
  // How much later than the others the rank leaves MPI_Init.
  std::uint64_t start_skew_ps() const;

  // How long the rank takes, from its instant `from_ps` on, for what takes `work_ps` without detours.
  std::uint64_t duration_ps(std::uint64_t from_ps, std::uint64_t work_ps) {
    if (settings_ == nullptr) return work_ps;
    if (is_quiet(from_ps, from_ps + work_ps)) return work_ps;
    return interrupted_ps(from_ps, work_ps);
  }
  // When the rank goes on that has waited for the instant `at_ps`.
  std::uint64_t resume_ps(std::uint64_t at_ps) {
    if (settings_ == nullptr || is_quiet(at_ps, at_ps + 1)) return at_ps;
    return delayed_ps(at_ps);
  }

 private:
  bool is_quiet(std::uint64_t from_ps, std::uint64_t to_ps) const {
    return from_ps >= quiet_from_ps_.load(std::memory_order_relaxed) &&
           to_ps <= quiet_until_ps_.load(std::memory_order_relaxed);
  }
  void set_quiet(std::uint64_t from_ps, std::uint64_t until_ps) {
    quiet_from_ps_.store(from_ps, std::memory_order_relaxed);
    quiet_until_ps_.store(until_ps, std::memory_order_relaxed);
  }

  struct Detour {
    std::uint64_t begin_ps;
    std::uint64_t end_ps;  // equal: there is none
  };

  std::uint64_t interrupted_ps(std::uint64_t from_ps, std::uint64_t work_ps);
  std::uint64_t delayed_ps(std::uint64_t at_ps);
  bool reaches(const NoiseSource& source) const;
  Detour detour(std::uint32_t source, std::uint64_t period) const;
  std::uint64_t free_from(std::uint64_t at_ps);
  std::uint64_t quiet_until(std::uint64_t at_ps) const;

  const NoiseSettings* settings_ = nullptr;  // null: a silent core
  NoiseTaken* taken_ = nullptr;
  std::uint32_t node_ = 0;
  std::uint32_t core_ = 0;
  std::uint64_t origin_ps_ = 0;
  // No detour begins or lasts between the two.
  std::atomic<std::uint64_t> quiet_from_ps_{0};
  std::atomic<std::uint64_t> quiet_until_ps_{0};
};

}  // namespace dryfly
