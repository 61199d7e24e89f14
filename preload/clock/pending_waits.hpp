// The timed waits that the threads of this process are in: when nobody can run, the clock moves to the earliest of
// their deadlines and no further. A fixed table, because a thread that is cancelled in its wait leaves without a word;
// such a place is found by its thread being gone.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace dryfly::preload {

class PendingWait {
 public:
  // A wait for the clock alone, by a thread that could go on (preload/clock/common_clock.hpp), or one of the program's.
  enum class Form : std::uint8_t { of_program, of_clock_only };

  explicit PendingWait(std::uint64_t deadline_ps, Form form = Form::of_program);
  ~PendingWait();
  PendingWait(const PendingWait&) = delete;
  PendingWait& operator=(const PendingWait&) = delete;

  // Is no other thread's deadline sooner?
  bool is_first() const;
  // Has another thread come out of a timed wait since this was last asked, or since this wait began?
  bool another_came_out();
  // The earliest deadline of all; wire::far_future if there is none.
  static std::uint64_t earliest();
  // Does the thread wait for the clock alone?
  static bool is_of_clock_only(pid_t thread);

 private:
  std::uint64_t deadline_ps_;
  int place_;  // -1: the table was full, and others do not know of this wait
  std::uint32_t ended_;
};

}  // namespace dryfly::preload
