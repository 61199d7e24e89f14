// Waits without a deadline, in which a thread may wait for what others compute, and what ends them (workers.hpp).
#include <pthread.h>
#include <semaphore.h>

#include "preload/clock/workers.hpp"
#include "preload/export.hpp"
#include "preload/real.hpp"

using namespace dryfly::preload;

DRYFLY_EXPORT int pthread_join(pthread_t thread, void** result) {
  const WaitFor wait(reinterpret_cast<void*>(thread));
  return real::pthread_join()(thread, result);
}

DRYFLY_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  note_release(barrier);
  const WaitFor wait(barrier);
  return real::pthread_barrier_wait()(barrier);
}

DRYFLY_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  const WaitFor wait(condition);
  return real::pthread_cond_wait()(condition, mutex);
}

DRYFLY_EXPORT int sem_post(sem_t* semaphore) noexcept {
  note_release(semaphore);
  return real::sem_post()(semaphore);
}

DRYFLY_EXPORT int sem_wait(sem_t* semaphore) {
  const WaitFor wait(semaphore);
  return real::sem_wait()(semaphore);
}
