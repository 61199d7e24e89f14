// How a job ends: the first cause that is known counts, and what follows from it does not. That a shim or a launcher
// has gone is mostly such a consequence, of something that is reported a moment later, so it is only presumed for a
// while.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "launch/ending.hpp"

namespace dryfly::launch {

constexpr int exit_of_signal = 128;
constexpr int exit_of_timeout = 124;
constexpr int exit_of_noexec = 127;

class Outcome {
 public:
  using Clock = std::chrono::steady_clock;

  // `line` is what the status descriptor is told; only the first one counts.
  void conclude(std::string line, int exit_status);
  void conclude_by(const Ending& ending, int rank, pid_t pid);
  void conclude_abort(int rank, int code);
  void conclude_interrupted(int signal);
  void conclude_noexec(const std::string& path, int error);

  // Counts if nothing else is concluded within 300 ms of the first presumption; the last one made by then is taken.
  void presume(std::string line, int exit_status);
  bool presumes() const { return presumption_.has_value(); }
  // Clock::time_point::max() without a presumption.
  Clock::time_point presumed_until() const;
  void conclude_presumed();  // there is a presumption

  bool decided() const { return verdict_.has_value(); }
  const std::string& line() const;  // of what is decided
  int exit_status() const;

 private:
  struct Verdict {
    std::string line;
    int exit_status;
  };

  std::optional<Verdict> verdict_;
  std::optional<Verdict> presumption_;
  Clock::time_point presumed_until_;
};

}  // namespace dryfly::launch
