// Half of a round trip between threads of rank 0 and threads of the last rank, which all call MPI at once
// (MPI_THREAD_MULTIPLE). With -t S:R rank 0 has S threads and the last rank R, a multiple of S; the rounds of a sending
// thread go to its R / S receiving threads in turn, by tag. The figure is the mean over sending threads.
#include <pthread.h>
#include <stdint.h>

#include "pair.h"

static size_t bytes;
static int rounds;  // of a sending thread, the warm-up included

static struct thread {
  double seconds;
  long wrong;
} threads[64];

static int receivers_of_each(void) { return options.receive_threads / options.send_threads; }

static void* send_rounds(void* argument) {
  const int self = (int)(intptr_t)argument;
  char *out = buffer_of(bytes), *in = buffer_of(bytes);
  for (int round = 0; round < rounds; ++round) {
    const int tag = self + options.send_threads * (round % receivers_of_each());
    if (options.validate) fill(out, bytes, seed_of(my_rank, tag, round));
    const double started = MPI_Wtime();
    MPI_Send(out, (int)bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD);
    MPI_Recv(in, (int)bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (round >= options.warmup) threads[self].seconds += MPI_Wtime() - started;
    if (options.validate) threads[self].wrong += wrong_bytes(in, bytes, seed_of(peer, tag, round));
  }
  free(out);
  free(in);
  return NULL;
}

static void* answer_rounds(void* argument) {
  const int tag = (int)(intptr_t)argument;
  char *out = buffer_of(bytes), *in = buffer_of(bytes);
  for (int round = tag / options.send_threads; round < rounds; round += receivers_of_each()) {
    if (options.validate) fill(out, bytes, seed_of(my_rank, tag, round));
    MPI_Recv(in, (int)bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, (int)bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD);
    if (options.validate) threads[tag].wrong += wrong_bytes(in, bytes, seed_of(peer, tag, round));
  }
  free(out);
  free(in);
  return NULL;
}

static void latency_of_size(size_t size) {
  const int count = peer < 0 ? 0 : sends ? options.send_threads : options.receive_threads;
  pthread_t started[64];
  bytes = size;
  rounds = options.warmup + options.iterations;
  memset(threads, 0, sizeof threads);
  MPI_Barrier(MPI_COMM_WORLD);
  for (intptr_t at = 0; at < count; ++at)
    if (pthread_create(&started[at], NULL, sends ? send_rounds : answer_rounds, (void*)at) != 0) {
      fprintf(stderr, "rank %d: a thread cannot be started\n", my_rank);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  double seconds = 0;
  long wrong = 0;
  for (int at = 0; at < count; ++at) {
    pthread_join(started[at], NULL);
    seconds += threads[at].seconds;
    wrong += threads[at].wrong;
  }
  print_row(size, (double[]){seconds / options.send_threads / options.iterations / 2 * 1e6}, all_wrong(wrong));
}

static size_t bytes_of_threads(size_t size) { return 2 * size * (size_t)options.receive_threads; }

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  know_ranks(argv);
  if (provided < MPI_THREAD_MULTIPLE) refuse(argv[0], "this MPI library has no MPI_THREAD_MULTIPLE");
  pair_defaults();
  options.window = 0;
  options.send_threads = 1;
  options.receive_threads = 2;
  read_options(argc, argv, "t",
               "  -t, --num-threads [S:]R       sending and receiving threads, R a multiple of S (1:2)\n");
  one_pair();
  add_column("Latency (us)", "mean_us", 18);
  begin_table("# MPI Multi-threaded Latency Test\n# [ threads: %d sending, %d receiving ]", options.send_threads,
              options.receive_threads);
  return run(&(struct sweep){.unit = 1, .bytes = bytes_of_threads, .measure = latency_of_size});
}
