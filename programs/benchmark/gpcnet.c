// Random rings and allreduces, alone and beside congestors: the tests that GPCNeT (github netbench/GPCNET, version 1.3)
// defines, and its congestors, in a program of our own. The figures are GPCNeT's: of an exchange with both neighbours
// of a ring half its time; what a rank sends in an iteration of the bandwidth test over its time, the barrier included;
// and what an allreduce takes on each rank. Averages are over ranks, 99 % is of all iterations of all ranks.
//
// As in GPCNeT a communicator has one rank of each node, so no test has messages within a node, and as many of them as
// a node has ranks run at once. Congestors have nodes of their own, drawn at random, a quarter of them each: an
// all-to-all, an incast of messages, one of puts, and gets from one rank, of 4 KiB all of them.
//
// Differs from GPCNeT: counts of repetitions are given, and do not follow from ten seconds; nodes and rings are drawn
// with the one seed, by another generator; a congestor looks whether the tests are over with a blocking allreduce every
// few iterations; receives have buffers of their own, so that what arrives can be checked.
#include <stdint.h>

#include "benchmark.h"

enum {
  test_count = 3,
  kind_count = 4,
  congestor_bytes = 4096,
  outstanding = 8,
  pass_ranks = 32,
  to_left = 82,
  to_right = 81
};
enum test { latency, bandwidth, allreduce };
enum kind { alltoall, incast, put_incast, get_bcast };

static const char* const test_names[] = {"RR latency (8 B)", "RR bandwidth+sync (131072 B)", "Allreduce (8 B)"};
static const char* const test_keys[] = {"latency", "bandwidth", "allreduce"};
static const char* const units[] = {"usec", "MiB/s/rank", "usec"};

static struct {
  double congestors;  // their share of the nodes
  int rings, warmup, iterations[test_count], pass, check, seed;
  int budget_s, counted;  // 0: none; whether a count was given
  const char* json;
} given = {0.4, 1, 200, {200, 8, 200}, 64, 1, 8675309, 0, 0, NULL};

struct figures {
  double mean, p99;
};

static struct {
  int nodes, ppn, congestor_nodes;
  int is_congestor, kind;
  MPI_Comm slice;  // one rank of each node: of the tests, or of one kind of congestors
  MPI_Comm side;   // all ranks of the tests, or of that kind
  int place, places;
} job;

static char *to_send, *received, *window_memory;
static MPI_Win window;
static long wrong;

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// The order that the skeleton draws too (core/motif/workload/gpcnet.cpp).
static void draw_order(int* order, int size, uint64_t seed, uint64_t number) {
  const uint64_t workload = 3;
  const uint64_t key = mix(mix(mix(seed) ^ number) ^ workload);
  for (int i = 0; i < size; ++i) order[i] = i;
  for (int i = size - 1; i > 0; --i) {
    const int other = (int)(((unsigned __int128)mix(key ^ mix((uint64_t)i)) * (uint64_t)(i + 1)) >> 64);
    const int kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
}

// Words of a message: none like another's, nor like an earlier one of its.
static void fill_words(char* at, size_t bytes, int source, int target, int tag, int iteration) {
  if (!given.check) return;
  uint64_t word = mix(((uint64_t)source << 32 | (uint64_t)target) ^ mix((uint64_t)(tag << 20 | (iteration + 1024))));
  for (size_t i = 0; i < bytes; i += sizeof word, ++word) memcpy(at + i, &word, sizeof word);
}

// What was filled so is there; it is overwritten, so that nothing old can pass next time.
static void check_words(char* at, size_t bytes, int source, int target, int tag, int iteration) {
  if (!given.check) return;
  uint64_t word = mix(((uint64_t)source << 32 | (uint64_t)target) ^ mix((uint64_t)(tag << 20 | (iteration + 1024))));
  for (size_t i = 0; i < bytes; i += sizeof word, ++word) wrong += memcmp(at + i, &word, sizeof word) != 0;
  memset(at, 0, bytes);
}

// --- Who is what

// Nodes are numbered by their first rank, and the ranks of a node by their order.
static void find_nodes(int* node, int* local) {
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  int length;
  MPI_Get_processor_name(name, &length);
  char* names = memory_for((size_t)rank_count, sizeof name);
  MPI_Allgather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, MPI_COMM_WORLD);
  int* node_of = memory_for((size_t)rank_count, sizeof(int));
  int* ranks = memory_for((size_t)rank_count, sizeof(int));  // of each node
  for (int rank = 0; rank < rank_count; ++rank) {
    const char* its = names + (size_t)rank * sizeof name;
    // Ranks of a node are often one behind the other.
    int found = rank > 0 && strcmp(its - sizeof name, its) == 0 ? node_of[rank - 1] : -1;
    for (int before = 0; found < 0 && before < rank; ++before)
      if (strcmp(names + (size_t)before * sizeof name, its) == 0) found = node_of[before];
    node_of[rank] = found < 0 ? job.nodes++ : found;
    if (rank == my_rank) *node = node_of[rank], *local = ranks[node_of[rank]];
    ++ranks[node_of[rank]];
  }
  job.ppn = ranks[0];
  for (int other = 0; other < job.nodes; ++other)
    if (ranks[other] != job.ppn) refuse("ranks", "accepted are as many on each node");
  free(ranks);
  free(node_of);
  free(names);
}

static void divide(int* local) {
  int node = 0;
  find_nodes(&node, local);
  job.congestor_nodes = (int)(given.congestors * job.nodes);
  const int least = given.congestors > 0 ? 2 * kind_count : 0;
  if (job.nodes - job.congestor_nodes < 2 || job.congestor_nodes < least)
    refuse("--congestors", "accepted is a share that leaves 2 nodes for the tests and 2 for each of 4 congestors");
  int* order = memory_for((size_t)job.nodes, sizeof(int));
  draw_order(order, job.nodes, (uint64_t)given.seed, 0);
  int at = 0;
  while (order[at] != node) ++at;
  free(order);
  job.is_congestor = at < job.congestor_nodes;
  job.kind = job.is_congestor ? at % kind_count : kind_count;
  MPI_Comm_split(MPI_COMM_WORLD, job.kind * job.ppn + *local, at, &job.slice);
  MPI_Comm_split(MPI_COMM_WORLD, job.kind, at * job.ppn + *local, &job.side);
  MPI_Comm_rank(job.slice, &job.place);
  MPI_Comm_size(job.slice, &job.places);
}

// --- The tests

struct ring {
  size_t bytes;
  int messages, warmup, iterations, barrier;
};

static double exchange(const struct ring* ring, int left, int right) {
  MPI_Request requests[4 * outstanding];
  char* const from_right = received + (size_t)ring->messages * ring->bytes;
  const double began = MPI_Wtime();
  MPI_Request* open = requests;
  for (int n = 0; n < ring->messages; ++n) {
    MPI_Irecv(received + (size_t)n * ring->bytes, (int)ring->bytes, MPI_CHAR, left, to_right, job.slice, open++);
    MPI_Irecv(from_right + (size_t)n * ring->bytes, (int)ring->bytes, MPI_CHAR, right, to_left, job.slice, open++);
  }
  for (int n = 0; n < ring->messages; ++n) {
    MPI_Isend(to_send, (int)ring->bytes, MPI_CHAR, left, to_left, job.slice, open++);
    MPI_Isend(to_send + ring->bytes, (int)ring->bytes, MPI_CHAR, right, to_right, job.slice, open++);
  }
  MPI_Waitall(4 * ring->messages, requests, MPI_STATUSES_IGNORE);
  if (ring->barrier) MPI_Barrier(job.slice);
  return MPI_Wtime() - began;
}

static void ring_test(const struct ring* ring, int number, int local, double* times) {
  int* order = memory_for((size_t)job.places, sizeof(int));
  draw_order(order, job.places, (uint64_t)given.seed + (uint64_t)local, (uint64_t)number + 1);
  int at = 0;
  while (order[at] != job.place) ++at;
  const int right = order[(at + 1) % job.places], left = order[(at + job.places - 1) % job.places];
  free(order);
  MPI_Barrier(job.side);
  for (int i = -ring->warmup; i < ring->iterations; ++i) {
    fill_words(to_send, ring->bytes, job.place, left, to_left, i);
    fill_words(to_send + ring->bytes, ring->bytes, job.place, right, to_right, i);
    const double took = exchange(ring, left, right);
    if (i >= 0) times[i] = took;
    for (int n = 0; n < 2 * ring->messages; ++n) {
      const int of_left = n < ring->messages;
      check_words(received + (size_t)n * ring->bytes, ring->bytes, of_left ? left : right, job.place,
                  of_left ? to_right : to_left, i);
    }
  }
  MPI_Barrier(job.slice);
}

static void allreduce_test(double* times) {
  MPI_Barrier(job.side);
  for (int i = -1; i < given.iterations[allreduce]; ++i) {
    double own = job.place + i, sum = 0;
    const double began = MPI_Wtime();
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, job.slice);
    const double took = MPI_Wtime() - began;
    if (i >= 0) times[i] = took;
    const double places = job.places;
    if (given.check) wrong += sum != places * (places - 1) / 2 + places * i;
  }
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static const struct ring rings[] = {{8, 1, 0, 0, 0}, {131072, outstanding, 1, 0, 1}};

// Of all ranks' times, on the first rank of the tests.
static struct figures figures_of(enum test test, double* times, int count) {
  int ranks, here;
  MPI_Comm_size(job.side, &ranks);
  MPI_Comm_rank(job.side, &here);
  const double bytes = 2.0 * outstanding * 131072 / (1024 * 1024);
  double sum = 0, mean = 0;
  for (int i = 0; i < count; ++i) sum += times[i];
  const double own = test == bandwidth ? bytes * count / sum : sum / count * (test == latency ? 0.5e6 : 1e6);
  MPI_Reduce(&own, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, job.side);
  const size_t values = (size_t)ranks * (size_t)count;
  double* all = here == 0 ? memory_for(values, sizeof(double)) : NULL;
  MPI_Gather(times, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, job.side);
  struct figures figures = {mean / ranks, 0};
  if (here != 0) return figures;
  qsort(all, values, sizeof(double), by_size);
  const double slow = all[values * 99 / 100 < values ? values * 99 / 100 : values - 1];
  figures.p99 = test == bandwidth ? bytes / slow : slow * (test == latency ? 0.5e6 : 1e6);
  free(all);
  return figures;
}

static struct figures run_test(enum test test, int local, int loaded) {
  const int number = test == allreduce ? 1 : given.rings, each_ring = given.iterations[test];
  double* times = memory_for((size_t)number * (size_t)each_ring, sizeof(double));
  if (loaded) MPI_Barrier(MPI_COMM_WORLD);  // the congestors are there
  if (test == allreduce) {
    allreduce_test(times);
  } else {
    struct ring ring = rings[test];
    ring.iterations = each_ring;
    if (test == latency) ring.warmup = given.warmup;
    for (int n = 0; n < number; ++n) ring_test(&ring, n, local, times + (size_t)n * (size_t)each_ring);
  }
  if (loaded) {
    MPI_Request over;
    MPI_Ibarrier(MPI_COMM_WORLD, &over);
    MPI_Wait(&over, MPI_STATUS_IGNORE);
  }
  const struct figures figures = figures_of(test, times, number * each_ring);
  free(times);
  return figures;
}

// --- What a budget allows

static int within(double seconds, double each_s) {
  const double most = 1e6, count = seconds / each_s;
  return count < 1 ? 1 : count > most ? (int)most : (int)count;
}

// Counts that take about as much wall time under dryfly, a third for each test. An estimate, so that the same command
// gives the same counts: 20 us a message of these ranks, and 0.45 us for each of 4 hops of each 2 KiB, on the computer
// that docs/guide/benchmarks.md names; beside congestors all is done twice, and a fifth of it is theirs.
static void spend_budget(void) {
  const double message_s = 20e-6, kib2_s = 4 * 0.45e-6, with_congestors = 2.4;
  const int places = job.nodes - job.congestor_nodes, ranks = places * job.ppn;
  int rounds = 0;
  while ((1 << rounds) < places) ++rounds;
  const double third = given.budget_s / 3.0 / (job.congestor_nodes > 0 ? with_congestors : 1) / given.rings;
  const double exchange_s = 2 * ranks * message_s;
  const double window_s = ranks * (2 * outstanding * (message_s + 64 * kib2_s) + rounds * message_s);
  given.warmup = given.iterations[latency] = within(third / 2, exchange_s);
  given.iterations[bandwidth] = within(third - window_s, window_s);  // one does not count
  given.iterations[allreduce] = within(third * given.rings, ranks * rounds * message_s);
  if (my_rank == 0)
    printf("budget of %d s: %d exchanges of 8 B behind %d that do not count, %d of 131072 B, %d allreduces\n",
           given.budget_s, given.iterations[latency], given.warmup, given.iterations[bandwidth],
           given.iterations[allreduce]);
}

// --- The congestors

static char* block(char* buffer, int number) { return buffer + (size_t)number * congestor_bytes; }

static void exchange_all(void) {
  const int power_of_two = (job.places & (job.places - 1)) == 0;
  for (int step = 1; step < job.places; ++step) {
    const int to = power_of_two ? job.place ^ step : (job.place + step) % job.places;
    const int from = power_of_two ? to : (job.place + job.places - step) % job.places;
    MPI_Sendrecv(block(to_send, to), congestor_bytes, MPI_CHAR, to, 1, block(received, from), congestor_bytes, MPI_CHAR,
                 from, 1, job.slice, MPI_STATUS_IGNORE);
  }
}

static void send_to_one(MPI_Request* requests) {
  if (job.place != 0) {
    MPI_Send(block(to_send, 0), congestor_bytes, MPI_CHAR, 0, 1, job.slice);
    return;
  }
  for (int from = 1; from < job.places; ++from)
    MPI_Irecv(block(received, from), congestor_bytes, MPI_CHAR, from, 1, job.slice, &requests[from - 1]);
  MPI_Waitall(job.places - 1, requests, MPI_STATUSES_IGNORE);
}

// With more ranks an iteration takes longer.
static int iterations_of_pass(void) {
  const int iterations = job.places > pass_ranks ? given.pass * pass_ranks / job.places : given.pass;
  return iterations > 0 ? iterations : 1;
}

static void congest(MPI_Request* requests) {
  for (int i = 0; i < iterations_of_pass(); ++i) {
    if (job.kind == alltoall) {
      exchange_all();
    } else if (job.kind == incast) {
      send_to_one(requests);
    } else if (job.place != 0) {
      if (job.kind == put_incast)
        MPI_Put(block(to_send, 0), congestor_bytes, MPI_CHAR, 0, (MPI_Aint)job.place * congestor_bytes, congestor_bytes,
                MPI_CHAR, window);
      else
        MPI_Get(block(received, 0), congestor_bytes, MPI_CHAR, 0, 0, congestor_bytes, MPI_CHAR, window);
      MPI_Win_flush(0, window);
    }
  }
}

static int one_sided(void) { return job.kind == put_incast || job.kind == get_bcast; }

static void check_congestion(void) {
  const int all = job.place == 0 && job.kind == incast;
  for (int from = 0; from < job.places; ++from)
    if (from != job.place && (all || job.kind == alltoall))
      check_words(block(received, from), congestor_bytes, from, job.place, job.kind, 0);
  if (job.kind == get_bcast && job.place != 0) check_words(block(received, 0), congestor_bytes, 0, 0, job.kind, 0);
  if (job.kind == put_incast && job.place == 0)
    for (int from = 1; from < job.places; ++from)
      check_words(block(window_memory, from), congestor_bytes, from, 0, job.kind, 0);
}

// Until the tests are over; all ranks of a kind do as much.
static void run_congestor(void) {
  MPI_Request* requests = memory_for((size_t)job.places, sizeof *requests);
  if (one_sided() && job.place != 0) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  congest(requests);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Request over;
  MPI_Ibarrier(MPI_COMM_WORLD, &over);
  for (int all_over = 0; !all_over;) {
    int is_over = 0;
    congest(requests);
    MPI_Test(&over, &is_over, MPI_STATUS_IGNORE);
    MPI_Allreduce(&is_over, &all_over, 1, MPI_INT, MPI_MIN, job.side);
  }
  if (one_sided() && job.place != 0) MPI_Win_unlock(0, window);
  if (one_sided()) MPI_Barrier(job.slice);
  check_congestion();
  free(requests);
}

static void make_buffers(void) {
  const size_t of_tests = (size_t)2 * outstanding * 131072, of_congestors = (size_t)job.places * congestor_bytes;
  received = memory_for(job.is_congestor ? of_congestors : of_tests, 1);
  to_send = memory_for(job.is_congestor ? of_congestors : (size_t)2 * 131072, 1);
  if (!job.is_congestor) return;
  for (int to = 0; to < job.places; ++to) fill_words(block(to_send, to), congestor_bytes, job.place, to, job.kind, 0);
  if (!one_sided()) return;
  const size_t bytes = job.place == 0 ? of_congestors : 0;
  MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, job.slice, &window_memory, &window);
  if (job.place == 0) memset(window_memory, 0, bytes);
  if (job.place == 0 && job.kind == get_bcast) fill_words(window_memory, congestor_bytes, 0, 0, job.kind, 0);
  MPI_Barrier(job.slice);
}

// --- What is printed

static void print_table(const char* title, const struct figures* figures) {
  static const char bar[] = "+---------------------------------+--------------+--------------+--------------+";
  printf("\n+%.*s+\n| %-76s |\n%s\n| %31s | %12s | %12s | %12s |\n%s\n", (int)sizeof bar - 3,
         "------------------------------------------------------------------------------", title, bar, "Name", "Avg",
         "99%", "Units", bar);
  for (int test = 0; test < test_count; ++test)
    printf("| %31s | %12.1f | %12.1f | %12s |\n%s\n", test_names[test], figures[test].mean, figures[test].p99,
           units[test], bar);
}

// How many times worse it is beside the congestors.
static struct figures factors(enum test test, const struct figures* alone, const struct figures* beside) {
  if (test == bandwidth)
    return (struct figures){alone[test].mean / beside[test].mean, alone[test].p99 / beside[test].p99};
  return (struct figures){beside[test].mean / alone[test].mean, beside[test].p99 / alone[test].p99};
}

static void print_factors(const struct figures* alone, const struct figures* beside) {
  static const char bar[] = "+---------------------------------+----------------------+---------------------+";
  printf("\n%s\n| %31s | %20s | %19s |\n%s\n", bar, "Congestion impact factor", "Avg", "99%", bar);
  for (int test = 0; test < test_count; ++test) {
    const struct figures factor = factors((enum test)test, alone, beside);
    printf("| %31s | %19.1fX | %18.1fX |\n%s\n", test_names[test], factor.mean, factor.p99, bar);
  }
}

static void write_figures(const char* name, const struct figures* figures) {
  fprintf(json, ",\n  \"%s\": {", name);
  for (int test = 0; test < test_count; ++test)
    fprintf(json, "%s\"%s\": {\"mean\": %.6f, \"p99\": %.6f}", test > 0 ? ", " : "", test_keys[test],
            figures[test].mean, figures[test].p99);
  fprintf(json, "}");
}

static void write_json(const struct figures* alone, const struct figures* beside) {
  fprintf(json,
          ",\n  \"nodes\": %d, \"congestor_nodes\": %d, \"rings\": %d, \"iterations\": [%d, %d, %d], \"pass\": %d, "
          "\"seed\": %d,\n  \"units\": {\"latency\": \"us\", \"bandwidth\": \"MiB/s/rank\", \"allreduce\": \"us\"}",
          job.nodes, job.congestor_nodes, given.rings, given.iterations[0], given.iterations[1], given.iterations[2],
          given.pass, given.seed);
  write_figures("isolated", alone);
  if (job.congestor_nodes > 0) {
    struct figures factor[test_count];
    for (int test = 0; test < test_count; ++test) factor[test] = factors((enum test)test, alone, beside);
    write_figures("congested", beside);
    write_figures("factors", factor);
  }
  fprintf(json, ",\n  \"wrong\": %ld", wrong);
}

static void print_results(struct figures (*results)[test_count]) {
  printf("GPCNeT's tests: %d ranks on %d nodes, %d of them with congestors\n", rank_count, job.nodes,
         job.congestor_nodes);
  print_table("Isolated network tests", results[0]);
  if (job.congestor_nodes > 0) {
    print_table("Network tests beside congestors", results[1]);
    print_factors(results[0], results[1]);
  }
  fflush(stdout);
  if (json != NULL) write_json(results[0], results[1]);
}

// The first rank has what the first one of the tests knows.
static void hand_over(struct figures (*results)[test_count]) {
  int here = -1;
  if (!job.is_congestor) MPI_Comm_rank(job.side, &here);
  const int bytes = (int)(2 * sizeof *results);
  if (here == 0 && my_rank != 0) MPI_Send(results, bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
  if (here != 0 && my_rank == 0)
    MPI_Recv(results, bytes, MPI_CHAR, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// --- What is asked for

static void help(const char* name) {
  if (my_rank == 0)
    printf(
        "%s [OPTIONS]\n"
        "  --congestors SHARE        of the nodes, 0 to 0.9; 0: all nodes run the tests (0.4)\n"
        "  --rings N                 random rings of a test (1)\n"
        "  --warmup N                exchanges of 8 B before those that count (200)\n"
        "  --latency-iterations N    in a ring (200)\n"
        "  --bandwidth-iterations N  in a ring (8)\n"
        "  --allreduces N            (200)\n"
        "  --budget SECONDS          of wall time under dryfly, as an estimate, in place of these four counts\n"
        "  --pass N                  iterations of a congestor of 32 ranks between two looks whether the tests are\n"
        "                            over; of more ranks fewer (64)\n"
        "  --seed N                  of nodes and rings (8675309)\n"
        "  --check 0|1               0: data that arrives is not checked (1)\n"
        "  --json FILE               figures for other programs\n",
        name);
  MPI_Finalize();
  exit(0);
}

static double share(const char* text) {
  char* end;
  const double value = strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0 && value <= 0.9))
    refuse("--congestors", "accepted is a share of the nodes from 0 to 0.9");
  return value;
}

static void read_arguments(int argc, char** argv) {
  static const struct option names[] = {{"congestors", required_argument, NULL, 'c'},
                                        {"rings", required_argument, NULL, 'r'},
                                        {"warmup", required_argument, NULL, 'x'},
                                        {"latency-iterations", required_argument, NULL, 'l'},
                                        {"bandwidth-iterations", required_argument, NULL, 'b'},
                                        {"allreduces", required_argument, NULL, 'a'},
                                        {"budget", required_argument, NULL, 'B'},
                                        {"pass", required_argument, NULL, 'p'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"check", required_argument, NULL, 'k'},
                                        {"json", required_argument, NULL, 'j'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  int* const counts[] = {&given.rings, &given.iterations[0], &given.iterations[1], &given.iterations[2], &given.pass};
  opterr = 0;
  for (int option, which; (option = getopt_long(argc, argv, ":h", names, &which)) != -1;) {
    const char* const at = strchr("rlbap", option);
    if (strchr("lbax", option) != NULL) given.counted = 1;
    if (at != NULL)
      *counts[at - "rlbap"] = whole(names[which].name, optarg, 1);
    else if (option == 'B')
      given.budget_s = whole("--budget", optarg, 1);
    else if (option == 'c')
      given.congestors = share(optarg);
    else if (option == 'x')
      given.warmup = whole("warmup", optarg, 0);
    else if (option == 's')
      given.seed = whole("seed", optarg, 0);
    else if (option == 'k')
      given.check = whole("check", optarg, 0) != 0;
    else if (option == 'j')
      given.json = optarg;
    else if (option == 'h')
      help(argv[0]);
    else
      refuse(argv[optind - 1], option == ':' ? "a value is missing" : "no such option; -h lists them");
  }
  if (given.budget_s > 0 && given.counted)
    refuse("--budget", "accepted is it without --warmup, --latency-iterations, --bandwidth-iterations, --allreduces");
  if (optind < argc) refuse(argv[optind], "only options are accepted; -h lists them");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  read_arguments(argc, argv);
  int local = 0;
  divide(&local);
  if (given.budget_s > 0) spend_budget();
  open_json(given.json);
  make_buffers();
  struct figures results[2][test_count] = {{{0, 0}}};
  for (int loaded = 0; loaded < (job.congestor_nodes > 0 ? 2 : 1); ++loaded) {
    for (int test = 0; test < test_count; ++test) {
      if (!job.is_congestor)
        results[loaded][test] = run_test((enum test)test, local, loaded);
      else if (loaded)
        run_congestor();
    }
  }
  hand_over(results);
  long all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  wrong = all;
  if (my_rank == 0) print_results(results);
  any_wrong = wrong != 0;
  if (job.is_congestor && one_sided()) MPI_Win_free(&window);
  return finish(given.json);
}
