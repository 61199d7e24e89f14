// A benchmark of one nonblocking collective: first alone, to its wait, then with work between start and wait that takes
// each rank as long as the operation alone did. The columns are OSU's: both together, the work, the operation alone,
// each the mean over ranks and repetitions, and how much of it was hidden behind the work.
//
// With `-i 1 -x 0` a size has exactly two barriers; dryfly compare counts what follows the second.
#pragma once

#include "asleep.h"
#include "collective.h"

static void (*start)(MPI_Request* request);
static double work_s;

static inline void start_work_wait(void) {
  MPI_Request request;
  start(&request);
  work(work_s);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static inline void measure_start(size_t size) {
  double pure, overall;
  long wrong = 0;
  work_s = 0;
  repeat(&pure, &wrong);
  work_s = pure / 1e6;
  repeat(&overall, &wrong);
  double mine[2] = {overall, pure}, sums[2];
  MPI_Reduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  wrong = all_wrong(wrong);
  overall = sums[0] / rank_count, pure = sums[1] / rank_count;
  print_row(size, (double[]){overall, pure, pure, overlap_of(pure, pure, overall)}, wrong);
}

static inline int measure_nonblocking(int argc, char** argv, void (*starts)(MPI_Request* request)) {
  start = starts;
  collective.call = start_work_wait;
  collective_defaults();
  read_options(argc, argv, "d", help_of_accelerator);
  begin_accelerator(1);
  add_column("Overall(us)", "overall_us", 18);
  add_column("Compute(us)", "compute_us", 18);
  add_column("Pure Comm.(us)", "pure_us", 18);
  add_column("Overlap(%)", "overlap_percent", 18);
  return run_collective(measure_start);
}
