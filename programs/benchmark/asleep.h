// Work beside communication: the rank sleeps, in which virtual time passes, and does not call MPI meanwhile. Natively a
// sleep is some 50 us late and leaves the processor to others, such as threads of MPI.
#pragma once

#include <time.h>

static inline void work(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  if (seconds > 0) nanosleep(&time, NULL);
}

// In per cent, in OSU's way: how much of the communication alone (`pure`) was hidden behind work that takes `worked`,
// when both together take `overall`.
static inline double overlap_of(double pure, double worked, double overall) {
  const double hidden = pure > 0 ? 100 * (1 - (overall - worked) / pure) : 0;
  return hidden < 0 ? 0 : hidden > 100 ? 100 : hidden;
}
