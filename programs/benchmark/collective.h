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

static inline void print_head(int with_size) {
  if (my_rank != 0) return;
  printf("# MPI %s Latency Test, %d ranks\n%-10s%18s", collective.title, rank_count, with_size ? "# Size" : "#",
         "Avg Latency(us)");
  if (options.full) printf("%18s%18s%12s", "Min Latency(us)", "Max Latency(us)", "Iterations");
  end_head();
}

static inline void print_row(size_t size, int with_size, double mine_us, long wrong) {
  double sum, least, most;
  MPI_Reduce(&mine_us, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine_us, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine_us, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  wrong = all_wrong(wrong);
  if (my_rank != 0) return;
  if (with_size)
    printf("%-10zu", size);
  else
    printf("%-10s", "");
  printf("%18.*f", options.digits, sum / rank_count);
  if (options.full) printf("%18.*f%18.*f%12d", options.digits, least, options.digits, most, options.iterations);
  end_row(wrong);
}

static inline void measure_size(size_t size, int with_size) {
  double seconds = 0;
  long wrong = 0;
  begin_each();
  for (int repetition = -options.warmup; repetition < options.iterations; ++repetition) {
    if (options.validate) (collective.fill ? collective.fill : fill_blocks)(repetition);
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime();
    collective.call();
    double took = MPI_Wtime() - started;
    if (repetition >= 0) seconds += took;
    note_each(repetition, took * 1e6 / rank_count);
    if (options.validate) wrong += (collective.wrong ? collective.wrong : wrong_blocks)(repetition);
  }
  print_row(size, with_size, seconds / options.iterations * 1e6, wrong);
  if (!options.each) return;
  double* means = calloc((size_t)options.iterations, sizeof *means);
  MPI_Reduce(each, means, options.iterations, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  print_each(with_size ? size : 0, means);
  free(means);
}

static inline int measure_collective(int argc, char** argv, int with_size) {
  size_t unit = collective.unit;
  options = (struct options){
      .least = unit, .most = 1 << 20, .iterations = 5, .warmup = 1, .digits = 2, .memory = (size_t)64 << 20};
  read_options(argc, argv, "fe", help_of_full);
  print_head(with_size);
  // The largest buffers of any rank, so that all agree on the sizes.
  int blocks = collective.sends + collective.receives, most_blocks;
  MPI_Allreduce(&blocks, &most_blocks, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  for (size_t size = with_size ? options.least : unit; size <= (with_size ? options.most : unit);
       size = next_size(size)) {
    if (size % unit != 0) continue;
    if (!fits(size, (size_t)most_blocks * size)) break;
    to_send = buffer_of((size_t)collective.sends * size);
    received = buffer_of((size_t)collective.receives * size);
    count = (int)(size / unit);
    if (collective.prepare) collective.prepare();
    measure_size(size, with_size);
    free(to_send);
    free(received);
  }
  return finish();
}
