// Threads that the program has made, and where each is in virtual time by what it computes.
//
// A thread is where the one was that made it, or that ended its wait, and as much later as its own processor time
// since. A wait of the main thread that another one has ended takes until that one was there; a thread that calls MPI
// has come as far as it has computed, and so does a clock show it, where no other has been in MPI since. When an MPI
// call of another thread has ended, none is later than the clock: what it has used beyond that it has spun, or used
// while this computer simulated.
//
// Left out: waits for a mutex, or by what a runtime waits with itself (OpenMP's, whose main thread computes its part as
// the others do); threads of thrd_create; how many processors the rank has for its threads.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace dryfly::preload {

// What pthread_create is to be given in place of these, so that the thread is known.
struct ThreadStart {
  void* (*function)(void*);
  void* argument;
};
ThreadStart known_thread(void* (*function)(void*), void* argument);
// No thread has been made of it.
void forget_thread(const ThreadStart& start);

// The calling thread has left MPI: none of the others that compute is later than the clock.
void hold_others_back();
// It is not the main one, and goes on with the program from here.
void note_gap();
// The processor time of the calling thread, where what it computes counts, else 0; and what it has used since that is
// not its computing.
std::uint64_t worker_clock_ns();
void leave_worker_out_since(std::uint64_t clock_ns);
// The instant to which the calling thread, which is not the main one, has come; 0 if that is not known.
std::uint64_t computed_up_to_ps();

// The calling thread may end waits for this: a semaphore, a condition, a barrier, the word of a futex, the end of a
// thread.
void note_release(const void* object);
// A wait of the calling thread for it.
class WaitFor {
 public:
  explicit WaitFor(const void* object);
  ~WaitFor();
  WaitFor(const WaitFor&) = delete;
  WaitFor& operator=(const WaitFor&) = delete;

 private:
  const void* object_;  // null: it does not count
  std::uint64_t began_ps_ = 0;
};
// A wait with a deadline is of the main thread's only: another one that has slept it out would be put back to its
// begin.
const void* for_main(const void* object);

}  // namespace dryfly::preload
