// How a program's sleeps and timed waits end in virtual time.
//
// What a wait waits for (another thread, a file descriptor) is real, its time-out is virtual, and so it has to be
// decided when "it will not happen before the deadline" is true:
//  - The main thread looks whether it has happened. If not, and no other thread of the process can run, nobody is there
//    to make it happen: the clock moves to the deadline and the wait has timed out, unless another thread waits for an
//    earlier instant (PendingWait), whose turn is first. It looks twice, with an attempt between that sees what has
//    happened up to the first look; a thread at a mutex that the waiting one holds can run, and so can one that has
//    just come out of a wait. While another thread can run (is running, or would be if it had a processor), the wait
//    goes on for real, in short slices, but never longer than the program asked for: as long in real time and, while
//    threads only lack a processor, in processor time.
//  - A helper thread does not own the clock. Its wait is over when the rank's clock has come to the deadline, or when
//    the same time has passed for real. If the rank is not inside MPI and no other thread can run, all are waiting
//    for this one, and it moves the clock itself.
//  - While another thread waits in MPI, that one moves the clock, and the wait lasts until it has come to the deadline
//    (preload/clock/common_clock.hpp).
// On a served fabric (dryfly serve) every wait lasts as long as asked, for real, and then the clock moves by as much.
// A deadline that no run lives to see (far_future) never comes: such a wait ends by what it waits for. Waits of the MPI
// library are not touched, and neither are system calls made without the C library, pthread_timedjoin_np and
// message queues.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdint>

#include "preload/clock/pending_waits.hpp"

namespace dryfly::preload {

// What can end a wait before its deadline.
enum class EndedBy : std::uint8_t { time_only, others };

class TimedWait {
 public:
  // `first_slice_ns`: the length of the first attempt where another thread might act; without one it is 0.
  TimedWait(std::uint64_t deadline_ps, EndedBy ended_by, std::uint64_t first_slice_ns = 0);
  ~TimedWait();
  TimedWait(const TimedWait&) = delete;
  TimedWait& operator=(const TimedWait&) = delete;

  // Waits for the next attempt where nothing but time ends the wait.
  void rest() const;
  // The real time for which the next attempt may wait.
  std::uint64_t slice_ns() const { return slice_ns_; }
  int slice_ms() const { return static_cast<int>(slice_ns_ / 1'000'000); }
  timespec slice() const {
    return {static_cast<time_t>(slice_ns_ / 1'000'000'000U), static_cast<long>(slice_ns_ % 1'000'000'000U)};
  }
  // The end of the next attempt on a real clock.
  timespec slice_end(clockid_t clock) const;

  // After an attempt that found nothing: is there to be another? If not, the wait has timed out and the clock is moved.
  // A thread that waits for the mutex `held` will run as soon as the next attempt releases it.
  bool go_on(pthread_mutex_t* held = nullptr);

 private:
  // The clock has moved: what is left of the wait counts from now on.
  void begin_again(std::uint64_t now);
  bool is_over(std::uint64_t elapsed_ns, bool another_can_run) const;
  bool nobody_else_acts(bool another_can_run);

  std::uint64_t deadline_ps_;
  std::uint64_t requested_ns_;
  std::uint64_t began_ns_;     // real
  std::uint64_t used_ns_;      // processor time of all threads at the beginning
  std::uint64_t seen_ps_ = 0;  // the clock, moved by another thread
  std::uint64_t slice_ns_;
  bool main_;
  std::uint8_t looks_;
  std::uint8_t looks_left_;  // that find nobody who could act, before the clock moves
  PendingWait pending_;
};

// Is this wait to be virtual: has the process a virtual clock, and does the code at `caller` live in it?
bool waits_virtually(const void* caller);

}  // namespace dryfly::preload
