// A benchmark of one collective operation: before each repetition a barrier, then the operation, timed on each rank.
// The figure is the mean over ranks and repetitions, as OSU's collective tests give it.
//
// With `-i 1 -x 1` a size has exactly two barriers; dryfly compare finds the operation after the second in a recording.
#pragma once

#include "benchmark.h"

struct collective {
  const char* title;
  size_t unit;            // bytes of an element: sizes are multiples of it
  void (*prepare)(void);  // NULL, or called once for each size
  void (*call)(void);
  int sends, receives;            // blocks of this rank's buffers
  double moved;                   // blocks that all ranks together send to others; 0: no figure of them
  int to_each;                    // what is sent to each rank differs
  int from_root;                  // all that arrives is rank 0's
  void (*fill)(int repetition);   // NULL: blocks of bytes
  long (*wrong)(int repetition);  // NULL: blocks of bytes
};

static struct collective collective;
static char *to_send, *received;
static int count;  // elements of a block

static inline void fill_blocks(int repetition) {
  size_t bytes = (size_t)count;
  for (int block = 0; block < collective.sends; ++block)
    fill(to_send + (size_t)block * bytes, bytes, seed_of(my_rank, collective.to_each ? block : 0, repetition));
}

static inline long wrong_blocks(int repetition) {
  size_t bytes = (size_t)count;
  long wrong = 0;
  for (int block = 0; block < collective.receives; ++block) {
    unsigned seed = seed_of(collective.from_root ? 0 : block, collective.to_each ? my_rank : 0, repetition);
    wrong += wrong_bytes(received + (size_t)block * bytes, bytes, seed);
  }
  return wrong;
}

static inline void repeat(double* mine_us, long* wrong) {
  double seconds = 0;
  begin_each();
  for (int repetition = -options.warmup; repetition < options.iterations; ++repetition) {
    if (options.validate) (collective.fill ? collective.fill : fill_blocks)(repetition);
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime();
    collective.call();
    double took = MPI_Wtime() - started;
    if (repetition >= 0) seconds += took;
    note_each(repetition, took * 1e6 / rank_count);
    if (options.validate) *wrong += (collective.wrong ? collective.wrong : wrong_blocks)(repetition);
  }
  *mine_us = seconds / options.iterations * 1e6;
}

static inline void measure_call(size_t size) {
  double mine_us, sum, least, most;
  long wrong = 0;
  repeat(&mine_us, &wrong);
  MPI_Reduce(&mine_us, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine_us, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine_us, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  wrong = all_wrong(wrong);
  const double mean = sum / rank_count, gb_per_s = collective.moved * (double)size / mean / 1e3;
  print_row(size, (double[]){mean, least, most, options.iterations, gb_per_s}, wrong);
  if (!options.each) return;
  double* means = calloc((size_t)options.iterations, sizeof *means);
  MPI_Reduce(each, means, options.iterations, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  print_each(table.sizeless ? 0 : size, means);
  free(means);
}

static int most_blocks;  // of any rank's buffers, so that all agree on the sizes

static inline size_t bytes_of_blocks(size_t size) { return (size_t)most_blocks * size; }

static void (*measure_size)(size_t size);

static inline void with_buffers(size_t size) {
  to_send = buffer_of((size_t)collective.sends * size);
  received = buffer_of((size_t)collective.receives * size);
  count = (int)(size / collective.unit);
  if (collective.prepare) collective.prepare();
  measure_size(size);
  free_buffer(to_send);
  free_buffer(received);
}

static inline void collective_defaults(void) {
  options = (struct options){.least = collective.unit,
                             .most = 1 << 20,
                             .iterations = 5,
                             .warmup = 1,
                             .digits = 2,
                             .check = 1,
                             .memory = (size_t)64 << 20};
}

// The columns are there already.
static inline int run_collective(void (*measure)(size_t size)) {
  measure_size = measure;
  begin_table("# MPI %s Latency Test, %d ranks", collective.title, rank_count);
  int blocks = collective.sends + collective.receives;
  MPI_Allreduce(&blocks, &most_blocks, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return run(&(struct sweep){.unit = collective.unit, .bytes = bytes_of_blocks, .measure = with_buffers});
}

static inline int measure_collective(int argc, char** argv, int with_size) {
  collective_defaults();
  char help[400];
  snprintf(help, sizeof help, "%s%s", help_of_full, help_of_accelerator);
  read_options(argc, argv, "fed", help);
  begin_accelerator(1);
  table.sizeless = !with_size;
  add_column("Avg Latency(us)", "mean_us", 18);
  if (options.full) {
    add_column("Min Latency(us)", "min_us", 18);
    add_column("Max Latency(us)", "max_us", 18);
    table.columns[table.count++] = (struct column){"Iterations", "iterations", 12, 1};
  }
  if (options.full && collective.moved > 0) add_column("Aggregate(GB/s)", "aggregate_gb_per_s", 18);
  return run_collective(measure_call);
}
