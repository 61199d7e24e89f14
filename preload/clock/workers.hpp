// Threads that the program has made: what they compute where no thread of the rank is in MPI.
//
// Where one is, that one waits for them and moves the clock (compute.hpp). Where none is, a thread's own processor time
// says how far it has come since it began, or was woken by another one, where the main thread was then, or since it
// left MPI. When the main thread has waited it goes on no sooner than another one has signalled, posted, met it or
// ended; and a thread that calls MPI or reads a clock does so at the instant to which it has come.
//
// Left out: a wait for a thread that computes by a mutex or by what a runtime waits with itself (OpenMP's, whose main
// thread computes its part as the others do); threads of thrd_create; how many processors the rank has for its threads.
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

// The calling thread, if it is not the main one, may let another one go on.
void note_release();
// The calling thread, which is not the main one, has left MPI; or it has waited for another one.
void note_outside_mpi();
void note_woken();
// The instant to which the calling thread, which is not the main one, has come by its own processor time; 0 where
// another one has been in MPI meanwhile.
std::uint64_t computed_up_to_ps();

// The main thread waits for others, and goes on, no sooner than at this instant.
void begin_wait_for_workers();
std::uint64_t end_wait_for_workers();

}  // namespace dryfly::preload
