// How a job ends: the first cause that is known counts, and what follows from it does not. That a shim or a launcher
// has gone is mostly such a consequence, of something that is reported a moment later, so it is only presumed for a
// while. A rank that exits is the cause, but all may be about to exit as it does, each with something to print: the
// job ends once no rank has done so for a while.
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
constexpr int exit_of_refusal = 2;

class Outcome {
 public:
  using Clock = std::chrono::steady_clock;

  // `line` is what the status descriptor is told; only the first one counts.
  void conclude(std::string line, int exit_status);
  void conclude_by(const Ending& ending, int rank, pid_t pid);  // a rank that exits: as expect_more
  void conclude_abort(int rank, int code);
  void conclude_interrupted(int signal);
  void conclude_noexec(const std::string& path, int error);

  // Counts if nothing else is concluded within 300 ms of the first presumption; the last one made by then is taken.
  void presume(std::string line, int exit_status);
  bool presumes() const { return presumption_.has_value(); }
  // Is the cause, and is concluded when nothing of the kind has happened for 300 ms, or when anything else is.
  void expect_more(std::string line, int exit_status);
  bool expects_more() const { return expects_more_; }
  // Where a rank may still be on its way to such an end: 300 ms more, but no longer than 3 s from the last one.
  bool expects_longer();
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
  bool expects_more_ = false;
  Clock::time_point presumed_until_;
  Clock::time_point patient_until_;
};

}  // namespace dryfly::launch
