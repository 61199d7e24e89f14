// The timed waits that the threads of this process are in: when nobody can run, the clock moves to the earliest of
// their deadlines and no further. A fixed table, because a thread that is cancelled in its wait leaves without a word;
// such a place is found by its thread being gone.
#pragma once

#include <cstdint>

namespace dryfly::preload {

class PendingWait {
 public:
  explicit PendingWait(std::uint64_t deadline_ps);
  ~PendingWait();
  PendingWait(const PendingWait&) = delete;
  PendingWait& operator=(const PendingWait&) = delete;

  // Is no other thread's deadline sooner?
  bool is_first() const;
  // Has another thread come out of a timed wait since this was last asked, or since this wait began?
  bool another_came_out();

 private:
  std::uint64_t deadline_ps_;
  int place_;  // -1: the table was full, and others do not know of this wait
  std::uint32_t ended_;
};

}  // namespace dryfly::preload
