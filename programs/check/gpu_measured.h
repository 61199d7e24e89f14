// Times of calls for programs that run on real GPUs, too: the clock, and medians in lines WHAT, BYTES MICROSECONDS.
#ifndef GPU_MEASURED_H
#define GPU_MEASURED_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef WITHOUT_MPI
#include <time.h>
#else
#include <mpi.h>
#endif

static double now(void) {
#ifdef WITHOUT_MPI
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
#else
  return MPI_Wtime() * 1e6;
#endif
}

enum { samples_most = 101 };
static double samples[samples_most];
static int rounds = 21;

static int compare(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return a < b ? -1 : a > b;
}

static void say(const char* what, size_t bytes, double parts) {
  qsort(samples, (size_t)rounds, sizeof *samples, compare);
  printf("%s, %zu %.3f\n", what, bytes, samples[rounds / 2] / parts);
  fflush(stdout);
}

#endif
