// Benchmarks between pairs of ranks: rank r of the first half and rank r + pairs of the second. With one pair and more
// ranks it is rank 0 and the last one, and the others wait.
#pragma once

#include "benchmark.h"

static int pairs;
static int sends;  // this rank is of the first half
static int peer;   // -1: this rank takes no part

static inline void one_pair(void) {
  pairs = 1;
  sends = my_rank == 0;
  peer = my_rank == 0 ? rank_count - 1 : my_rank == rank_count - 1 ? 0 : -1;
  begin_accelerator(sends);
}

static inline void many_pairs(void) {
  if (options.pairs > rank_count / 2) refuse("-p", "there are not so many pairs of ranks");
  if (options.pairs == 0) options.pairs = rank_count / 2;
  pairs = options.pairs;
  sends = my_rank < pairs;
  peer = my_rank >= 2 * pairs ? -1 : sends ? my_rank + pairs : my_rank - pairs;
  begin_accelerator(sends);
}

static inline void pair_defaults(void) {
  options = (struct options){.least = 1,
                             .most = 4 << 20,
                             .iterations = 10,
                             .warmup = 2,
                             .window = 64,
                             .digits = 2,
                             .check = 1,
                             .memory = (size_t)1 << 30,
                             .in_pairs = 1};
}

// A window of messages: one buffer for all, or with a data check one for each.
struct window {
  char *out, *in;
  MPI_Request* requests;  // twice as many as messages
  size_t bytes, step;
};

static inline struct window make_window(size_t bytes) {
  size_t messages = (size_t)options.window, buffers = options.validate ? messages : 1;
  struct window window = {.bytes = bytes, .step = options.validate ? bytes : 0};
  window.out = buffer_of(bytes * buffers);
  window.in = buffer_of(bytes * buffers);
  window.requests = malloc(2 * messages * sizeof *window.requests);
  return window;
}

static inline size_t window_bytes(size_t bytes) { return 2 * bytes * (options.validate ? (size_t)options.window : 1); }

static inline size_t two_buffers(size_t bytes) { return 2 * bytes; }

static inline void free_window(struct window* window) {
  free_buffer(window->out);
  free_buffer(window->in);
  free(window->requests);
}

static inline void fill_window(struct window* window, int repetition) {
  for (int k = 0; options.validate && k < options.window; ++k)
    fill(window->out + (size_t)k * window->step, window->bytes, seed_of(my_rank, k, repetition));
}

static inline long wrong_in_window(struct window* window, int repetition) {
  long wrong = 0;
  for (int k = 0; options.validate && k < options.window; ++k)
    wrong += wrong_bytes(window->in + (size_t)k * window->step, window->bytes, seed_of(peer, k, repetition));
  return wrong;
}

static inline int post_receives(struct window* window, int from) {
  for (int k = 0; k < options.window; ++k)
    MPI_Irecv(window->in + (size_t)k * window->step, (int)window->bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD,
              &window->requests[from + k]);
  return from + options.window;
}

static inline int post_sends(struct window* window, int from) {
  for (int k = 0; k < options.window; ++k)
    MPI_Isend(window->out + (size_t)k * window->step, (int)window->bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD,
              &window->requests[from + k]);
  return from + options.window;
}

// One window from the first half to the second, and a short answer when all of it is there.
static inline void send_window(struct window* window) {
  int posted = sends ? post_sends(window, 0) : post_receives(window, 0);
  MPI_Waitall(posted, window->requests, MPI_STATUSES_IGNORE);
  char answer[4] = {0};
  if (sends)
    MPI_Recv(answer, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(answer, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD);
}

// A table of bandwidths: of `windows` windows of messages that a call of `pass` moves.
static struct {
  double windows;
  void (*pass)(struct window*);
} bandwidth;

static inline void bandwidth_of_size(size_t size) {
  struct window window = make_window(size);
  double seconds = 0;
  long wrong = 0;
  begin_each();
  MPI_Barrier(MPI_COMM_WORLD);
  for (int repetition = -options.warmup; peer >= 0 && repetition < options.iterations; ++repetition) {
    fill_window(&window, repetition);
    double started = MPI_Wtime();
    bandwidth.pass(&window);
    double took = MPI_Wtime() - started;
    if (repetition >= 0) seconds += took;
    note_each(repetition, bandwidth.windows * (double)size * options.window / took / 1e6);
    if (!sends || bandwidth.windows > 1) wrong += wrong_in_window(&window, repetition);
  }
  wrong = all_wrong(wrong);
  double bytes = bandwidth.windows * (double)size * options.window * options.iterations;
  print_row(size, (double[]){bytes / seconds / 1e6}, wrong);
  print_each(size, each);
  free_window(&window);
}

static inline int measure_bandwidth(const char* title, double windows, void (*pass)(struct window*)) {
  bandwidth.windows = windows;
  bandwidth.pass = pass;
  add_column("Bandwidth (MB/s)", "bandwidth_mb_per_s", 18);
  begin_table("# %s", title);
  return run(&(struct sweep){.unit = 1, .bytes = window_bytes, .measure = bandwidth_of_size});
}

// Half of the mean round trip, in us; 0 on ranks that take no part.
static inline double half_round_trip_us(char* out, char* in, int bytes, long* wrong) {
  double seconds = 0;
  begin_each();
  for (int repetition = -options.warmup; peer >= 0 && repetition < options.iterations; ++repetition) {
    if (options.validate) fill(out, (size_t)bytes, seed_of(my_rank, 0, repetition));
    double started = MPI_Wtime();
    if (sends) MPI_Send(out, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!sends) MPI_Send(out, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
    double took = MPI_Wtime() - started;
    if (repetition >= 0) seconds += took;
    note_each(repetition, took / 2 * 1e6);
    if (options.validate) *wrong += wrong_bytes(in, (size_t)bytes, seed_of(peer, 0, repetition));
  }
  return seconds / options.iterations / 2 * 1e6;
}
