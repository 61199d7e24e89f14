// Benchmarks of one-sided operations between rank 0 and the last rank, on a window of these two ranks alone. How the
// window is made (-w) and how operations are completed (-s) have OSU's names. An epoch is begun, has one operation or
// more (--fence-interval), and is ended; with flush and flush_local the lock is taken once and a flush ends the epoch.
//
// Latency: time of an epoch over its operations. With pscw and fence both ranks have an epoch in turn, and the figure
// is half of the time of both, as OSU's is. Bandwidth: a window of operations (-W), an epoch after each
// --fence-interval of them (all). Accumulate adds integers, so its sizes are multiples of 4 bytes. With -d the window
// is memory of a GPU, too, and is made by MPI_Win_create where it would be allocated.
#pragma once

#include "pair.h"

enum operation { put, get, accumulate };

static struct {
  enum operation operation;
  int bandwidth;  // else latency
  int both;       // both ranks are origins at once
} test;

static MPI_Comm of_pair;
static MPI_Group of_peer;
static int target;  // the peer in that communicator

static MPI_Win win;
static char *exposed, *local;  // the window's memory, and what is sent or received
static MPI_Aint place;         // of the peer's memory in the window
static size_t bytes, step;     // of an operation; from one to the next: 0 without a data check

static inline int is_active(void) { return options.sync == sync_pscw || options.sync == sync_fence; }

static inline int in_turn(void) { return !test.bandwidth && is_active(); }

static inline int is_origin(void) { return sends || test.both || in_turn(); }

static inline int operations(void) { return test.bandwidth ? options.window : options.interval; }

static inline void make_win(size_t memory) {
  if (options.win == win_allocate) {
    MPI_Win_allocate((MPI_Aint)memory, 1, MPI_INFO_NULL, of_pair, &exposed, &win);
  } else {
    exposed = buffer_of(memory);
    if (options.win == win_create)
      MPI_Win_create(exposed, (MPI_Aint)memory, 1, MPI_INFO_NULL, of_pair, &win);
    else
      MPI_Win_create_dynamic(MPI_INFO_NULL, of_pair, &win);
  }
  place = 0;
  if (options.win != win_dynamic) return;
  MPI_Win_attach(win, exposed, (MPI_Aint)memory);
  MPI_Aint own;
  MPI_Get_address(exposed, &own);
  MPI_Sendrecv(&own, 1, MPI_AINT, target, 0, &place, 1, MPI_AINT, target, 0, of_pair, MPI_STATUS_IGNORE);
}

// The memory of a dynamic window is detached with the window's end.
static inline void free_win(void) {
  MPI_Win_free(&win);
  if (options.win != win_allocate) free_buffer(exposed);
}

// --- Epochs

// Around all epochs, where a flush ends each.
static inline int is_flushed(void) { return options.sync == sync_flush || options.sync == sync_flush_local; }

static inline void begin_lock(void) {
  if (is_flushed() && is_origin()) MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
}

static inline void end_lock(void) {
  if (is_flushed() && is_origin()) MPI_Win_unlock(target, win);
}

static inline void begin_epoch(int mine, int theirs) {
  if (options.sync == sync_pscw && theirs) MPI_Win_post(of_peer, 0, win);
  if (options.sync == sync_pscw && mine) MPI_Win_start(of_peer, 0, win);
  if (options.sync == sync_lock && mine) MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
  if (options.sync == sync_lock_all && mine) MPI_Win_lock_all(0, win);
}

static inline void end_epoch(int mine, int theirs) {
  if (options.sync == sync_fence) MPI_Win_fence(0, win);
  if (options.sync == sync_pscw && mine) MPI_Win_complete(win);
  if (options.sync == sync_pscw && theirs) MPI_Win_wait(win);
  if (options.sync == sync_lock && mine) MPI_Win_unlock(target, win);
  if (options.sync == sync_lock_all && mine) MPI_Win_unlock_all(win);
  if (options.sync == sync_flush && mine) MPI_Win_flush(target, win);
  if (options.sync == sync_flush_local && mine) MPI_Win_flush_local(target, win);
}

static inline void operate(int number) {
  const size_t at = (size_t)number * step;
  const int count = (int)bytes;
  if (test.operation == put)
    MPI_Put(local + at, count, MPI_CHAR, target, place + (MPI_Aint)at, count, MPI_CHAR, win);
  else if (test.operation == get)
    MPI_Get(local + at, count, MPI_CHAR, target, place + (MPI_Aint)at, count, MPI_CHAR, win);
  else
    MPI_Accumulate(local + at, count / 4, MPI_INT, target, place + (MPI_Aint)at, count / 4, MPI_INT, MPI_SUM, win);
}

// `mine`: this rank is an origin; `theirs`: the peer is one.
static inline void run_epochs(int mine, int theirs) {
  const int all = operations();
  for (int from = 0; from < all; from += options.interval) {
    const int to = from + options.interval < all ? from + options.interval : all;
    begin_epoch(mine, theirs);
    for (int number = from; mine && number < to; ++number) operate(number);
    end_epoch(mine, theirs);
  }
}

static inline void one_repetition(void) {
  if (in_turn()) {
    run_epochs(sends, !sends);
    run_epochs(!sends, sends);
  } else {
    run_epochs(is_origin(), !sends || test.both);
  }
}

// --- The data check

static inline int sum_of(int number, size_t at, int rank, int repetition) {
  return rank * 1000003 + number * 7919 + (int)at * 31 + repetition;
}

static inline size_t memory_of_test(void) { return bytes * (step > 0 ? (size_t)operations() : 1); }

// An accumulate finds what this rank had in its window; the other rank's numbers come to it.
static inline void fill_ints(char* buffer, int rank, int repetition) {
  const size_t values = bytes / 4;
  char* const host = on_host(buffer, memory_of_test(), 0);
  for (int number = 0; number < operations(); ++number)
    for (size_t at = 0; at < values; ++at)
      ((int*)(void*)host)[(size_t)number * values + at] = sum_of(number, at, rank, repetition);
  back_to_buffer(buffer, host, memory_of_test());
}

static inline void fill_slots(char* buffer, int rank, int repetition) {
  for (int number = 0; number < operations(); ++number)
    fill(buffer + (size_t)number * step, bytes, seed_of(rank, number, repetition));
}

// A window's memory is looked at and changed by its own rank under a lock, or between epochs that both ranks take part
// in.
static inline void own_memory(int begins) {
  if (is_active()) return;
  if (begins)
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - target, 0, win);
  else
    MPI_Win_unlock(1 - target, win);
}

static inline void prepare_data(int repetition) {
  own_memory(1);
  if (test.operation == accumulate) {
    fill_ints(exposed, my_rank, repetition);
    fill_ints(local, my_rank, repetition);
  } else if (test.operation == put) {
    clear(exposed, memory_of_test());
    fill_slots(local, my_rank, repetition);
  } else {
    clear(local, memory_of_test());
    fill_slots(exposed, my_rank, repetition);
  }
  own_memory(0);
}

static inline long wrong_ints(int repetition) {
  const size_t values = bytes / 4;
  char* const host = on_host(exposed, memory_of_test(), 1);
  long wrong = 0;
  for (int number = 0; number < operations(); ++number)
    for (size_t at = 0; at < values; ++at)
      wrong += ((int*)(void*)host)[(size_t)number * values + at] !=
               sum_of(number, at, my_rank, repetition) + sum_of(number, at, peer, repetition);
  back_to_buffer(exposed, host, memory_of_test());
  return wrong;
}

static inline long wrong_data(int repetition) {
  const int is_target = !sends || test.both || in_turn();
  long wrong = 0;
  own_memory(1);
  if (test.operation == accumulate) {
    if (is_target) wrong = wrong_ints(repetition);
  } else if (test.operation == put ? is_target : is_origin()) {
    char* const arrived = test.operation == put ? exposed : local;
    for (int number = 0; number < operations(); ++number)
      wrong += wrong_bytes(arrived + (size_t)number * step, bytes, seed_of(peer, number, repetition));
  }
  own_memory(0);
  return wrong;
}

// --- The measurement

// No barrier: dryfly compare counts those.
static inline void meet(void) {
  MPI_Sendrecv(NULL, 0, MPI_CHAR, target, 0, NULL, 0, MPI_CHAR, target, 0, of_pair, MPI_STATUS_IGNORE);
}

static inline double timed_s(long* wrong) {
  double seconds = 0;
  if (!options.validate) begin_lock();
  if (options.sync == sync_fence) MPI_Win_fence(0, win);
  for (int repetition = -options.warmup; repetition < options.iterations; ++repetition) {
    if (options.validate) {
      prepare_data(repetition);
      meet();
      begin_lock();
    }
    const double started = MPI_Wtime();
    one_repetition();
    const double took = MPI_Wtime() - started;
    if (repetition >= 0) seconds += took;
    if (options.validate) {
      end_lock();
      meet();
      *wrong += wrong_data(repetition);
    }
  }
  if (!options.validate) end_lock();
  return seconds;
}

static inline void measure_operation(size_t size) {
  long wrong = 0;
  double mine = 0, seconds = 0;
  bytes = size;
  step = options.validate ? size : 0;
  if (peer >= 0) {
    local = buffer_of(memory_of_test());
    make_win(memory_of_test());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (peer >= 0) mine = timed_s(&wrong);
  if (!is_origin()) mine = 0;
  MPI_Reduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (!test.both) seconds = mine;
  wrong = all_wrong(wrong);
  const double moved = (double)operations() * options.iterations * (test.both ? 2 : 1);
  const double us = seconds / moved / (in_turn() ? 2 : 1) * 1e6;
  print_row(size, (double[]){test.bandwidth ? moved * (double)size / seconds / 1e6 : us}, wrong);
  if (peer < 0) return;
  free_win();
  free_buffer(local);
}

static inline size_t bytes_of_operations(size_t size) {
  return 2 * size * (options.validate ? (size_t)operations() : 1);
}

static inline void make_pair(void) {
  MPI_Group all;
  MPI_Comm_split(MPI_COMM_WORLD, peer < 0 ? MPI_UNDEFINED : 0, 0, &of_pair);
  if (peer < 0) return;
  target = sends ? 1 : 0;
  MPI_Comm_group(of_pair, &all);
  MPI_Group_incl(all, 1, &target, &of_peer);
  MPI_Group_free(&all);
}

static const char* const help_of_one_sided =
    "  -w, --win-option KIND         of window: allocate, create, dynamic (allocate)\n"
    "  -s, --sync-option KIND        flush, flush_local, lock, lock_all, pscw, fence (flush)\n";

static inline int measure_one_sided(int argc, char** argv, enum operation operation, int is_bandwidth, int both) {
  static const char* const names[] = {"Put", "Get", "Accumulate"};
  char help[800];
  begin(&argc, &argv);
  pair_defaults();
  test.operation = operation;
  test.bandwidth = is_bandwidth;
  test.both = both;
  if (operation == accumulate) options.least = 4;
  if (!is_bandwidth) options.window = 0;
  options.interval = is_bandwidth ? 0 : 1;
  snprintf(help, sizeof help, "%s%s      --fence-interval N        operations between two synchronisations (%s)\n%s",
           help_of_one_sided, is_bandwidth ? HELP_OF_WINDOW : "", is_bandwidth ? "a window" : "1", HELP_OF_PLACES);
  read_options(argc, argv, is_bandwidth ? "Wwsnd" : "wsnd", help);
  // What MPI_Win_allocate gives is the host's.
  if (options.accelerator != no_accelerator && options.win == win_allocate) options.win = win_create;
  if (is_bandwidth && options.interval == 0) options.interval = options.window;
  if (is_bandwidth && options.interval > options.window)
    refuse("--fence-interval", "accepted is at most the number of operations of a window (-W)");
  one_pair();
  if (is_bandwidth)
    add_column("Bandwidth (MB/s)", "bandwidth_mb_per_s", 18);
  else
    add_column("Latency (us)", "mean_us", 18);
  begin_table("# MPI_%s%s %s Test\n# Window creation: MPI_Win_%s\n# Synchronization: %s, after %d operations",
              names[operation], both ? " Bi-directional" : "", is_bandwidth ? "Bandwidth" : "Latency",
              options.win == win_dynamic ? "create_dynamic" : window_names[options.win], sync_names[options.sync],
              options.interval);
  make_pair();
  return run(&(struct sweep){
      .unit = operation == accumulate ? 4 : 1, .bytes = bytes_of_operations, .measure = measure_operation});
}
