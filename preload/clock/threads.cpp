#include "preload/clock/threads.hpp"

#include <pthread.h>
#include <threads.h>

#include <atomic>

#include "preload/caller.hpp"
#include "preload/clock/thread_states.hpp"
#include "preload/clock/workers.hpp"
#include "preload/export.hpp"
#include "preload/mpi/expected_mpi.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

std::atomic<bool> has_threads{false};

void note_thread(const void* creator) {
  if (clock_is_virtual() && is_in_library(creator)) end_for_progress_thread();
  if (!has_threads.load(std::memory_order_relaxed) && !lives_in_real_time(creator)) {
    has_threads.store(true, std::memory_order_relaxed);
  }
}

}  // namespace

bool program_has_threads() { return has_threads.load(std::memory_order_relaxed); }

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                                 void* argument) noexcept {
  note_thread(__builtin_return_address(0));
  const void* const creator = __builtin_return_address(0);
  const bool is_known = belongs_to_run() && !lives_in_real_time(creator);
  const ThreadStart given = is_known ? known_thread(start, argument) : ThreadStart{start, argument};
  const int status = real::pthread_create()(thread, attributes, given.function, given.argument);
  if (status != 0 && is_known) forget_thread(given);
  note_new_thread();
  return status;
}

DRYFLY_EXPORT int thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
  note_thread(__builtin_return_address(0));
  const int status = real::thrd_create()(thread, start, argument);
  note_new_thread();
  return status;
}
