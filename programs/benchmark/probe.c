// What `dryfly validate` measures on a machine, step by step, with any MPI: in each step pairs of ranks measure what is
// between them, all at once, and no rank is in two.
//
//   probe STEPS OUT                          files: what to measure, and what was
//   probe STEPS OUT RANKS LIMIT_S PER_NIC    the same on a real cluster: see below
//
// The steps and the rows of OUT are those of `dryfly-motif probe` (core/motif/workload/probe.cpp), times in
// picoseconds; `step NUMBER BEGIN END` in those of MPI_Wtime since the first step. Of a pair `A B GPU` the buffers of a
// stream are in the memory of that device of the node. Data of streams, pingpongs and sends
// is checked outside what is timed; a rank that has been sent something else ends the program.
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "benchmark.h"
#include "dryfly/work.h"

enum kind { pingpong, stream, sends, work };
static const char* const kind_names[] = {"pingpong", "stream", "send", "work"};
enum { to_meet = 1, to_measure = 2, none = -1 };
enum { most_bytes = 1 << 30, most_count = 1000000000 };

struct step {
  int kind;
  long long bytes, count, rank;
  int partner;  // of this rank; none: it rests
  int is_a;
  int gpu;  // none: its buffers are the host's
};

static void refuse_line(const char* path, int line, const char* sentence) {
  char where[256];
  snprintf(where, sizeof where, "probe: %s, line %d", path, line);
  refuse(where, sentence);
}

// Rank 0 reads, all get the text; the same input is wrong on all of them.
static char* read_all(const char* path) {
  long long size = -1;
  char* text = NULL;
  if (my_rank == 0) {
    FILE* file = fopen(path, "rb");
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
      size = ftell(file);
      rewind(file);
      text = memory_for((size_t)size + 1, 1);
      if (fread(text, 1, (size_t)size, file) != (size_t)size) size = -1;
    }
    if (file != NULL) fclose(file);
  }
  MPI_Bcast(&size, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  if (size < 0 || size > INT32_MAX) refuse(path, "no file of steps that can be read");
  if (my_rank != 0) text = memory_for((size_t)size + 1, 1);
  MPI_Bcast(text, (int)size, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

static int kind_named(const char* name) {
  for (int kind = 0; kind <= work; ++kind)
    if (strcmp(name, kind_names[kind]) == 0) return kind;
  return none;
}

// How many, and what each is to this rank.
static struct step* parse(char* text, const char* path, int* count) {
  struct step* steps = NULL;
  int* used = memory_for((size_t)rank_count, sizeof *used);  // the last step of each rank, from 1
  *count = 0;
  int number = 0;
  char* rest = NULL;
  for (char* line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    ++number;
    char name[16];
    struct step step = {.rank = 1, .partner = none, .gpu = none};
    const int words = sscanf(line, "step %15s %lld %lld %lld", name, &step.bytes, &step.count, &step.rank);
    if (words > 0) {
      step.kind = kind_named(name);
      if (words < 3 || step.kind == none || step.bytes < 0 || step.bytes > most_bytes || step.count < 1 ||
          step.count > most_count || step.rank < 1 || step.rank > step.count)
        refuse_line(path, number, "accepted is `step KIND BYTES COUNT [RANK]`, KIND pingpong, stream, send or work");
      steps = realloc(steps, (size_t)(*count + 1) * sizeof *steps);
      if (steps == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
      steps[(*count)++] = step;
      continue;
    }
    int a, b, gpu = none;
    if (*count == 0 || sscanf(line, "%d %d %d", &a, &b, &gpu) < 2 || a < 0 || b < 0 || a >= rank_count ||
        b >= rank_count)
      refuse_line(path, number, "accepted are two of the job's ranks, behind a step");
    struct step* last = &steps[*count - 1];
    if ((a == b) != (last->kind == work)) refuse_line(path, number, "accepted are two ranks, of `work` twice the same");
    if (used[a] == *count || used[b] == *count)
      refuse_line(path, number, "a rank of it is in an earlier pair of the step; accepted is one pair");
    used[a] = used[b] = *count;
    if (a != my_rank && b != my_rank) continue;
    last->partner = a == my_rank ? b : a;
    last->is_a = a == my_rank;
    last->gpu = gpu;
  }
  free(used);
  return steps;
}

// --- On a real cluster a rank may stop for good, or there may be other ranks than were asked for. So there the program
// knows how many RANKS were started; a rank that is in a step for LIMIT_S seconds says for whom it waits, and ends some
// seconds later (who says nothing is the one that has stopped); rank 0 says how far all are. PER_NIC ranks share a NIC,
// the first ones the first; 0: the library chooses NICs.

enum { seconds_to_the_end = 5, progress_ms = 200 };
static long limit_s;  // 0: not on a real cluster
static char where[96];
static volatile sig_atomic_t where_length, waited;

static void say_where(int signal_number) {
  (void)signal_number;
  if (waited) _exit(3);
  waited = 1;
  const ssize_t written = write(STDERR_FILENO, where, (size_t)where_length);
  (void)written;
  alarm(seconds_to_the_end);
}

static void note(int step, int partner) {
  if (limit_s == 0) return;
  alarm(0);
  waited = 0;
  int length = snprintf(where, sizeof where, "probe: rank %d waits in step %d for ", my_rank, step);
  if (partner == none) {
    length += snprintf(where + length, sizeof where - (size_t)length, "all\n");
  } else {
    length += snprintf(where + length, sizeof where - (size_t)length, "rank %d\n", partner);
  }
  where_length = length;
  alarm((unsigned)limit_s);
}

static void say_progress(int step) {
  static double last = -1;
  if (limit_s == 0 || my_rank != 0 || (last >= 0 && MPI_Wtime() - last < progress_ms * 1e-3)) return;
  last = MPI_Wtime();
  printf("probe: at %d\n", step);
  fflush(stdout);
}

// Of libfabric's cxi provider, before it is loaded; other providers do not know it.
static void choose_nic(long per_nic) {
  static const char* const names[] = {"MPI_LOCALRANKID",   "PMI_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "PALS_LOCAL_RANKID", "SLURM_LOCALID",  "FLUX_TASK_LOCAL_ID"};
  for (size_t n = 0; n < sizeof names / sizeof *names; ++n) {
    const char* local = getenv(names[n]);
    if (local == NULL) continue;
    char device[32];
    snprintf(device, sizeof device, "cxi%ld", strtol(local, NULL, 10) / per_nic);
    setenv("FI_CXI_DEVICE_NAME", device, 0);
    return;
  }
}

static void check_ranks(long asked) {
  char sentence[128];
  snprintf(sentence, sizeof sentence,
           "MPI has %d ranks and not the %ld that were started: launcher and MPI library do not fit", rank_count,
           asked);
  if (rank_count != asked) refuse("probe", sentence);
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  if (my_rank == 0) printf("probe: library %.*s\n", (int)strcspn(version, "\n"), version);
}

// --- Data

// What a rank sends in a step follows from both.
static void check(char* buffer, size_t bytes, int sender, int step) {
  const long wrong = wrong_bytes(buffer, bytes, seed_of(sender, my_rank, step));
  if (wrong == 0) return;
  fprintf(stderr, "probe: rank %d has %ld wrong bytes of rank %d in step %d\n", my_rank, wrong, sender, step);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// --- What a pair measures: two times in seconds

static void meet(int partner) {
  MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, to_meet, NULL, 0, MPI_BYTE, partner, to_meet, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static int ascending(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static void use_device(int gpu) {
  if (accelerator.set == NULL && !find_any_runtime())
    refuse("probe", "buffers on GPUs, and no library of a GPU runtime is found");
  check_accelerator("choosing a device", accelerator.set(gpu));
}

static void measure_stream(const struct step* step, int number, double times[2]) {
  const size_t bytes = (size_t)step->bytes;
  buffers_in = step->gpu == none ? 'H' : 'D';
  if (step->gpu != none) use_device(step->gpu);
  char* out = step->gpu == none ? memory_for(bytes, 1) : place_buffer(bytes);
  char* in = step->gpu == none ? memory_for((size_t)step->count, bytes) : place_buffer((size_t)step->count * bytes);
  MPI_Request* requests = memory_for(2 * (size_t)step->count, sizeof *requests);
  char* filled = on_host(out, bytes, 0);
  fill(filled, bytes, seed_of(my_rank, step->partner, number));
  back_to_buffer(out, filled, bytes);
  meet(step->partner);
  const double begun = MPI_Wtime();
  for (long long n = 0; n < step->count; ++n)
    MPI_Irecv(in + (size_t)n * bytes, (int)bytes, MPI_BYTE, step->partner, to_measure, MPI_COMM_WORLD, &requests[n]);
  for (long long n = 0; n < step->count; ++n)
    MPI_Isend(out, (int)bytes, MPI_BYTE, step->partner, to_measure, MPI_COMM_WORLD, &requests[step->count + n]);
  MPI_Waitall((int)(2 * step->count), requests, MPI_STATUSES_IGNORE);
  times[step->is_a ? 0 : 1] = MPI_Wtime() - begun;
  meet(step->partner);
  char* got = on_host(in, (size_t)step->count * bytes, 1);
  for (long long n = 0; n < step->count; ++n) check(got + (size_t)n * bytes, bytes, step->partner, number);
  free(requests);
  if (step->gpu == none) {
    free(out);
    free(in);
    return;
  }
  free(got);
  check_accelerator("giving memory back", accelerator.give_back(out));
  check_accelerator("giving memory back", accelerator.give_back(in));
}

static void measure_pingpong(const struct step* step, int number, double times[2]) {
  const int bytes = (int)step->bytes;
  char* out = memory_for((size_t)bytes, 1);
  char* in = memory_for((size_t)bytes, 1);
  fill(out, (size_t)bytes, seed_of(my_rank, step->partner, number));
  meet(step->partner);
  double best = 0;
  const double begun = MPI_Wtime();
  for (long long n = 0; n < step->count; ++n) {
    const double before = MPI_Wtime();
    if (step->is_a) MPI_Send(out, bytes, MPI_BYTE, step->partner, to_measure, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, step->partner, to_measure, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!step->is_a) MPI_Send(out, bytes, MPI_BYTE, step->partner, to_measure, MPI_COMM_WORLD);
    const double took = MPI_Wtime() - before;
    if (n == 0 || took < best) best = took;
  }
  if (step->is_a) {
    times[0] = best / 2;
    times[1] = (MPI_Wtime() - begun) / (2 * (double)step->count);
  }
  meet(step->partner);
  check(in, (size_t)bytes, step->partner, number);
  free(out);
  free(in);
}

// Of a message that is not copied away MPI_Send comes back when it has been acknowledged.
static void measure_sends(const struct step* step, int number, double times[2]) {
  const size_t bytes = (size_t)step->bytes, count = (size_t)step->count;
  char* buffer = memory_for(step->is_a ? 1 : count, bytes);
  MPI_Request* requests = memory_for(count, sizeof *requests);
  if (step->is_a) fill(buffer, bytes, seed_of(my_rank, step->partner, number));
  for (size_t n = 0; n < count && !step->is_a; ++n)
    MPI_Irecv(buffer + n * bytes, (int)bytes, MPI_BYTE, step->partner, to_measure, MPI_COMM_WORLD, &requests[n]);
  meet(step->partner);
  if (step->is_a) {
    double* took = memory_for(count, sizeof *took);
    for (size_t n = 0; n < count; ++n) {
      const double before = MPI_Wtime();
      MPI_Request sent;
      MPI_Isend(buffer, (int)bytes, MPI_BYTE, step->partner, to_measure, MPI_COMM_WORLD, &sent);
      MPI_Wait(&sent, MPI_STATUS_IGNORE);
      took[n] = MPI_Wtime() - before;
    }
    qsort(took, count, sizeof *took, ascending);
    times[0] = took[0];
    times[1] = took[step->rank - 1];
    free(took);
  } else {
    MPI_Waitall((int)count, requests, MPI_STATUSES_IGNORE);
  }
  meet(step->partner);
  for (size_t n = 0; n < count && !step->is_a; ++n) check(buffer + n * bytes, bytes, step->partner, number);
  free(buffer);
  free(requests);
}

// So many multiplications and additions that each needs the one before; under dryfly they are announced as such.
static void measure_work(const struct step* step, double times[2]) {
  volatile double sink;
  double value = 1;
  const double begun = MPI_Wtime();
  dryfly_work_announce(DRYFLY_ARITHMETIC, DRYFLY_FP64, 2 * step->count, 0, 0);
  if (dryfly_work_mode_now() != DRYFLY_WORK_SKIPPED)
    for (long long n = 0; n < step->count; ++n) value = value * 0.999999 + 1e-9;
  sink = value;
  (void)sink;
  times[0] = times[1] = MPI_Wtime() - begun;
}

// --- The result: rows of all ranks, by rank 0

struct row {
  double first, second, begun, ended;
  int partner, is_a;
};

static void write_rows(FILE* file, const struct step* steps, int count, const struct row* all) {
  for (int number = 0; number < count; ++number) {
    double begun = 0, ended = 0;
    int pairs = 0;
    for (int rank = 0; rank < rank_count; ++rank) {
      const struct row* row = &all[(size_t)rank * (size_t)count + (size_t)number];
      if (row->partner == none) continue;
      if (pairs == 0 || row->begun < begun) begun = row->begun;
      if (pairs == 0 || row->ended > ended) ended = row->ended;
      ++pairs;
    }
    if (pairs > 0) fprintf(file, "step %d %.0f %.0f\n", number, begun * 1e12, ended * 1e12);
    for (int rank = 0; rank < rank_count; ++rank) {
      const struct row* row = &all[(size_t)rank * (size_t)count + (size_t)number];
      if (row->partner == none || !row->is_a) continue;
      const struct row* other = &all[(size_t)row->partner * (size_t)count + (size_t)number];
      const double second = steps[number].kind == stream ? other->second : row->second;
      fprintf(file, "%d %d %d %.0f %.0f\n", number, rank, row->partner, row->first * 1e12, second * 1e12);
    }
  }
}

int main(int argc, char** argv) {
  const int real = argc == 6;
  if (real && strtol(argv[5], NULL, 10) > 0) choose_nic(strtol(argv[5], NULL, 10));
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  if (argc != 3 && argc != 6)
    refuse("probe", "accepted is probe STEPS OUT, two files, or with RANKS LIMIT_S PER_NIC behind them");
  if (real) {
    check_ranks(strtol(argv[3], NULL, 10));
    limit_s = strtol(argv[4], NULL, 10);
    signal(SIGALRM, say_where);
  }
  int count;
  struct step* steps = parse(read_all(argv[1]), argv[1], &count);
  FILE* file = my_rank == 0 ? fopen(argv[2], "w") : NULL;
  int opened = my_rank != 0 || file != NULL;
  MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (!opened) refuse(argv[2], "no file that can be written");

  struct row* rows = memory_for((size_t)count, sizeof *rows);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int number = 0; number < count; ++number) {
    const struct step* step = &steps[number];
    struct row* row = &rows[number];
    note(number, none);
    MPI_Barrier(MPI_COMM_WORLD);
    say_progress(number);
    double times[2] = {0, 0};
    row->begun = MPI_Wtime() - start;
    row->partner = step->partner;
    row->is_a = step->is_a;
    if (step->partner == none) continue;
    note(number, step->partner);
    if (step->kind == stream) measure_stream(step, number, times);
    if (step->kind == pingpong) measure_pingpong(step, number, times);
    if (step->kind == sends) measure_sends(step, number, times);
    if (step->kind == work) measure_work(step, times);
    row->first = times[0];
    row->second = times[1];
    row->ended = MPI_Wtime() - start;
  }
  note(count, none);
  struct row* all = my_rank == 0 ? memory_for((size_t)rank_count * (size_t)count, sizeof *all) : NULL;
  const int bytes = (int)((size_t)count * sizeof *rows);
  MPI_Gather(rows, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  int wrong = 0;
  if (my_rank == 0) {
    write_rows(file, steps, count, all);
    wrong = fclose(file) != 0;
    if (wrong) fprintf(stderr, "probe: %s: cannot be written\n", argv[2]);
  }
  MPI_Finalize();
  return wrong;
}
