// GPCNeT's tests (github netbench/GPCNET, version 1.3) and its congestors in a program of our own: those of its
// network_load_test, alone and beside the congestors, and those of its network_test. Names and tables are GPCNeT's, so
// that what reads its output reads this. The figures are GPCNeT's too: of an exchange with both neighbours of a ring
// half its time; what a rank sends in an iteration of a bandwidth test over its time, the barrier included where there
// is one; and what an allreduce takes on each rank. Averages are over ranks and rings, 99 % is of all iterations of all
// ranks, and an impact factor is the quotient of two printed figures.
//
// As in GPCNeT a communicator has one rank of each node, so no test has messages within a node, and as many of them as
// a node has ranks run at once. Congestors have nodes of their own, drawn at random, a quarter of them each: an
// all-to-all, an incast of messages, one of puts, and gets from one rank, of 4 KiB all of them. A natural ring has the
// nodes in the order of their ranks; with network_test's tests so have the communicators, else they are drawn.
//
// Differs from GPCNeT: counts of repetitions are given, and do not follow from ten seconds; nodes and rings are drawn
// with the one seed, by another generator; a congestor looks whether the tests are over with a blocking allreduce every
// few iterations; receives and puts have places of their own, so that what arrives can be checked; the congestors' own
// table, for which GPCNeT is to be built verbose, is always there.
#include <stdint.h>

#include "benchmark.h"

enum {
  kind_count = 4,
  count_count = 4,
  small = 8,
  large = 131072,
  block_bytes = 4096,
  outstanding = 8,
  pass_ranks = 32,
  alltoall_ranks = 64,
  least_nodes_of_kind = 2,
  least_nodes_of_tests = 2,
  to_left = 82,
  to_right = 81,
  in_window = 83
};
enum test { latency, get_latency, two_sided, put, bandwidth, natural, allreduce, alltoall, test_count };
enum count { of_latency, of_bandwidth, of_allreduce, of_alltoall };
enum way { by_message, by_get, by_put, by_collective };
enum kind { exchanges, incast, put_incast, get_bcast };
enum suite { load_test, network_test, all_tests };

// `parts` of an iteration's time are the figure of a test; 0: its figure is a rate.
static const struct test_of {
  const char *name, *key;
  enum count count;
  enum way way;
  int bytes, parts, barrier, of_load_test;
} tests[test_count] = {{"RR Two-sided Lat (8 B)", "latency", of_latency, by_message, small, 2, 0, 1},
                       {"RR Get Lat (8 B)", "get_latency", of_latency, by_get, small, 2, 0, 0},
                       {"RR Two-sided BW (131072 B)", "two_sided_bandwidth", of_bandwidth, by_message, large, 0, 0, 0},
                       {"RR Put BW (131072 B)", "put_bandwidth", of_bandwidth, by_put, large, 0, 0, 0},
                       {"RR Two-sided BW+Sync (131072 B)", "bandwidth", of_bandwidth, by_message, large, 0, 1, 1},
                       {"Nat Two-sided BW (131072 B)", "natural_bandwidth", of_bandwidth, by_message, large, 0, 0, 0},
                       {"Multiple Allreduce (8 B)", "allreduce", of_allreduce, by_collective, small, 1, 0, 1},
                       {"Multiple Alltoall (4096 B)", "alltoall", of_alltoall, by_collective, block_bytes, 0, 0, 0}};
static const char* const kind_names[] = {"Alltoall (4096 B)", "Two-sided Incast (4096 B)", "Put Incast (4096 B)",
                                         "Get Bcast (4096 B)"};
static const char* const kind_keys[] = {"alltoall", "incast", "put_incast", "get_bcast"};
static const char* const suite_names[] = {"load", "network", "all"};
static const double default_share = 0.4;

static struct {
  double congestors;  // their share of the nodes; below 0: none was given
  enum suite tests;
  int rings, warmup, iterations[count_count], pass, passes, check, seed;
  int budget_s, counted;  // 0: none; whether a count was given
  const char* json;
} given = {-1, load_test, 1, 200, {200, 8, 200, 64}, 64, 1, 1, 8675309, 0, 0, NULL};

struct figures {
  double mean, p99;
};

struct results {
  struct figures tests[2][test_count];  // alone, beside the congestors
  struct figures congestors[kind_count];
};

static struct {
  int nodes, ppn, congestor_nodes;
  int is_congestor, kind;
  MPI_Comm slice;  // one rank of each node: of the tests, or of one kind of congestors
  MPI_Comm side;   // all ranks of the tests, or of that kind
  int place, places;
  int* by_node;  // the slice's places in the order of the nodes
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

static int nodes_with_congestors(int nodes) {
  return (int)((long)(given.congestors * 1e6 + 0.5) * nodes / 1000000);  // as the skeleton reckons
}

static int are_enough(int nodes) {
  const int least = given.congestors > 0 ? least_nodes_of_kind * kind_count : 0;
  const int congestors = nodes_with_congestors(nodes);
  return congestors >= least && nodes - congestors >= least_nodes_of_tests;
}

static void require_nodes(int was_given) {
  if (are_enough(job.nodes)) return;
  char sentence[300];
  if (given.congestors == 0) {
    snprintf(sentence, sizeof sentence, "accepted are %d or more, for no test has messages within a node",
             least_nodes_of_tests);
    refuse("nodes", sentence);
  }
  int needed = least_nodes_of_tests;
  while (!are_enough(needed)) ++needed;
  snprintf(sentence, sizeof sentence,
           "accepted is a share that leaves %d nodes for the tests and %d for each of %d congestors; %s%g does from %d "
           "nodes on, and these are %d%s",
           least_nodes_of_tests, least_nodes_of_kind, kind_count, was_given ? "" : "the default of ", given.congestors,
           needed, job.nodes, was_given ? "" : "; 0.8 does from 10 on, and 0 needs no nodes for congestors");
  refuse("--congestors", sentence);
}

static void order_by_node(const int* order) {
  int* place_of = memory_for((size_t)job.nodes, sizeof(int));  // of a node, from 1 on; 0: of the congestors
  for (int at = job.congestor_nodes; at < job.nodes; ++at) place_of[order[at]] = at - job.congestor_nodes + 1;
  job.by_node = memory_for((size_t)job.places, sizeof(int));
  for (int node = 0, found = 0; node < job.nodes; ++node)
    if (place_of[node] > 0) job.by_node[found++] = place_of[node] - 1;
  free(place_of);
}

static void divide(int* local) {
  int node = 0;
  find_nodes(&node, local);
  const int was_given = given.congestors >= 0;
  if (!was_given) given.congestors = given.tests == network_test ? 0 : default_share;
  require_nodes(was_given);
  job.congestor_nodes = nodes_with_congestors(job.nodes);
  int* order = memory_for((size_t)job.nodes, sizeof(int));
  if (given.tests == network_test)
    for (int at = 0; at < job.nodes; ++at) order[at] = at;
  else
    draw_order(order, job.nodes, (uint64_t)given.seed, 0);
  int at = 0;
  while (order[at] != node) ++at;
  job.is_congestor = at < job.congestor_nodes;
  job.kind = job.is_congestor ? at % kind_count : kind_count;
  MPI_Comm_split(MPI_COMM_WORLD, job.kind * job.ppn + *local, at, &job.slice);
  MPI_Comm_split(MPI_COMM_WORLD, job.kind, at * job.ppn + *local, &job.side);
  MPI_Comm_rank(job.slice, &job.place);
  MPI_Comm_size(job.slice, &job.places);
  if (!job.is_congestor) order_by_node(order);
  free(order);
}

static int is_wanted(int test) { return given.tests != load_test || tests[test].of_load_test; }

static int iterations_of(int test) {
  const int count = given.iterations[tests[test].count], places = job.nodes - job.congestor_nodes;
  if (test != alltoall || places <= alltoall_ranks) return count;
  const long fewer = (long)count * alltoall_ranks / places;
  return fewer > 0 ? (int)fewer : 1;
}

// --- Figures

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// What a rank has for so many seconds: a rate of `mib` of them, or, without, us of which an iteration has `parts`.
struct unit {
  double mib;
  int parts;
};

static double figure(struct unit unit, double seconds) {
  return unit.parts == 0 ? unit.mib / seconds : seconds * 1e6 / unit.parts;
}

// Of all ranks' times in `iterations` of each of `rings`, on the first rank of the side; a rank without a part in it
// has times below 0, and counts for nothing.
static struct figures figures_of(struct unit unit, double* times, int rings, int iterations) {
  int ranks, here;
  MPI_Comm_size(job.side, &ranks);
  MPI_Comm_rank(job.side, &here);
  double own[2] = {0, times[0] >= 0}, sums[2] = {0, 0};
  for (int ring = 0; ring < rings; ++ring) {
    double sum = 0;
    for (int i = 0; i < iterations; ++i) sum += times[(size_t)ring * (size_t)iterations + (size_t)i];
    if (own[1] > 0) own[0] += figure(unit, sum / iterations) / rings;
  }
  MPI_Reduce(own, sums, 2, MPI_DOUBLE, MPI_SUM, 0, job.side);
  const int count = rings * iterations;
  const size_t values = (size_t)ranks * (size_t)count;
  double* all = here == 0 ? memory_for(values, sizeof(double)) : NULL;
  MPI_Gather(times, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, job.side);
  struct figures figures = {0, 0};
  if (here != 0) return figures;
  qsort(all, values, sizeof(double), by_size);
  const size_t valid = (size_t)(sums[1] + 0.5) * (size_t)count, reached = valid * 99 / 100;
  figures.mean = sums[0] / sums[1];
  figures.p99 = figure(unit, all[values - valid + (reached > 0 ? reached - 1 : 0)]);
  free(all);
  return figures;
}

// --- The tests

static char* place_in(char* buffer, int number) { return buffer + (size_t)number * large; }

struct ring {
  const struct test_of* test;
  int left, right, iterations;
};

static int many(const struct ring* ring) { return ring->test->bytes == large ? outstanding : 1; }

static void pass_messages(const struct ring* ring) {
  MPI_Request requests[4 * outstanding];
  MPI_Request* open = requests;
  const int bytes = ring->test->bytes, left = ring->left, right = ring->right;
  for (int n = 0; n < many(ring); ++n) {
    MPI_Irecv(place_in(received, n), bytes, MPI_CHAR, left, to_right, job.slice, open++);
    MPI_Irecv(place_in(received, outstanding + n), bytes, MPI_CHAR, right, to_left, job.slice, open++);
  }
  for (int n = 0; n < many(ring); ++n) {
    MPI_Isend(place_in(to_send, 0), bytes, MPI_CHAR, left, to_left, job.slice, open++);
    MPI_Isend(place_in(to_send, 1), bytes, MPI_CHAR, right, to_right, job.slice, open++);
  }
  MPI_Waitall(4 * many(ring), requests, MPI_STATUSES_IGNORE);
}

// A window has what others put, from the left and from the right, and behind it what its left and right one get.
static MPI_Aint at_in_window(int number) { return (MPI_Aint)number * large; }
static MPI_Aint word_in_window(int of_right) { return at_in_window(2 * outstanding) + of_right * small; }

static void get_words(const struct ring* ring) {
  MPI_Get(place_in(received, 0), small, MPI_CHAR, ring->left, word_in_window(1), small, MPI_CHAR, window);
  MPI_Get(place_in(received, outstanding), small, MPI_CHAR, ring->right, word_in_window(0), small, MPI_CHAR, window);
}

static void put_all(const struct ring* ring) {
  for (int n = 0; n < outstanding; ++n) {
    MPI_Put(place_in(to_send, 0), large, MPI_CHAR, ring->left, at_in_window(outstanding + n), large, MPI_CHAR, window);
    MPI_Put(place_in(to_send, 1), large, MPI_CHAR, ring->right, at_in_window(n), large, MPI_CHAR, window);
  }
}

static double exchange(const struct ring* ring) {
  const double began = MPI_Wtime();
  if (ring->test->way == by_message) pass_messages(ring);
  if (ring->test->way == by_get) get_words(ring);
  if (ring->test->way == by_put) put_all(ring);
  if (ring->test->way != by_message) {
    MPI_Win_flush(ring->left, window);
    MPI_Win_flush(ring->right, window);
  }
  if (ring->test->barrier) MPI_Barrier(job.slice);
  return MPI_Wtime() - began;
}

static void fill_ring(const struct ring* ring, int i) {
  if (ring->test->way == by_get) return;
  const size_t bytes = (size_t)ring->test->bytes;
  fill_words(place_in(to_send, 0), bytes, job.place, ring->left, to_left, i);
  fill_words(place_in(to_send, 1), bytes, job.place, ring->right, to_right, i);
}

static void check_ring(const struct ring* ring, char* memory, int i) {
  const size_t bytes = (size_t)ring->test->bytes;
  for (int n = 0; n < many(ring); ++n) {
    char *const from_left = place_in(memory, n), *const from_right = place_in(memory, outstanding + n);
    if (ring->test->way == by_get) {
      check_words(from_left, bytes, ring->left, 1, in_window, 0);
      check_words(from_right, bytes, ring->right, 0, in_window, 0);
    } else {
      check_words(from_left, bytes, ring->left, job.place, to_right, i);
      check_words(from_right, bytes, ring->right, job.place, to_left, i);
    }
  }
}

static void find_neighbours(struct ring* ring, int is_natural, int number, int local) {
  int* order = memory_for((size_t)job.places, sizeof(int));
  if (is_natural)
    memcpy(order, job.by_node, (size_t)job.places * sizeof(int));
  else
    draw_order(order, job.places, (uint64_t)given.seed + (uint64_t)local, (uint64_t)number + 1);
  int at = 0;
  while (order[at] != job.place) ++at;
  ring->right = order[(at + 1) % job.places];
  ring->left = order[(at + job.places - 1) % job.places];
  free(order);
}

static void ring_test(const struct ring* ring, double* times) {
  const int is_one_sided = ring->test->way != by_message;
  if (is_one_sided) MPI_Win_lock(MPI_LOCK_SHARED, ring->left, 0, window);
  if (is_one_sided && ring->left != ring->right) MPI_Win_lock(MPI_LOCK_SHARED, ring->right, 0, window);
  MPI_Barrier(job.side);
  for (int i = ring->test->bytes == small ? -given.warmup : -1; i < ring->iterations; ++i) {
    fill_ring(ring, i);
    const double took = exchange(ring);
    if (i >= 0) times[i] = took;
    if (ring->test->way != by_put) check_ring(ring, received, i);
  }
  MPI_Barrier(job.slice);
  if (ring->test->way == by_put) {  // of an iteration only the last is known to be over everywhere
    MPI_Win_sync(window);
    check_ring(ring, window_memory, ring->iterations - 1);
  }
  if (is_one_sided) MPI_Win_unlock(ring->left, window);
  if (is_one_sided && ring->left != ring->right) MPI_Win_unlock(ring->right, window);
}

static void allreduce_test(double* times) {
  MPI_Barrier(job.side);
  for (int i = -1; i < iterations_of(allreduce); ++i) {
    double own = job.place + i, sum = 0;
    const double began = MPI_Wtime();
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, job.slice);
    const double took = MPI_Wtime() - began;
    if (i >= 0) times[i] = took;
    const double places = job.places;
    if (given.check) wrong += sum != places * (places - 1) / 2 + places * i;
  }
}

static char* block(char* buffer, int number) { return buffer + (size_t)number * block_bytes; }

static void alltoall_test(double* times) {
  MPI_Barrier(job.side);
  for (int i = -1; i < iterations_of(alltoall); ++i) {
    for (int to = 0; to < job.places; ++to) fill_words(block(to_send, to), block_bytes, job.place, to, alltoall, i);
    const double began = MPI_Wtime();
    MPI_Alltoall(to_send, block_bytes, MPI_CHAR, received, block_bytes, MPI_CHAR, job.slice);
    const double took = MPI_Wtime() - began;
    if (i >= 0) times[i] = took;
    for (int of = 0; of < job.places; ++of) check_words(block(received, of), block_bytes, of, job.place, alltoall, i);
  }
}

static struct unit unit_of(int test) {
  const double mib = 1024 * 1024;
  const double sent = test == alltoall ? (double)block_bytes * (job.places - 1) : 2.0 * outstanding * large;
  return (struct unit){sent / mib, tests[test].parts};
}

static struct figures run_test(int test, int local, int loaded) {
  const int rings = tests[test].way == by_collective ? 1 : given.rings, iterations = iterations_of(test);
  double* times = memory_for((size_t)rings * (size_t)iterations, sizeof(double));
  if (loaded) MPI_Barrier(MPI_COMM_WORLD);  // the congestors are there
  if (test == allreduce) allreduce_test(times);
  if (test == alltoall) alltoall_test(times);
  for (int n = 0; tests[test].way != by_collective && n < rings; ++n) {
    struct ring ring = {.test = &tests[test], .iterations = iterations};
    find_neighbours(&ring, test == natural, n, local);
    ring_test(&ring, times + (size_t)n * (size_t)iterations);
  }
  if (loaded) {
    MPI_Request over;
    MPI_Ibarrier(MPI_COMM_WORLD, &over);
    MPI_Wait(&over, MPI_STATUS_IGNORE);
  }
  const struct figures figures = figures_of(unit_of(test), times, rings, iterations);
  free(times);
  return figures;
}

// --- What a budget allows

static int within(double seconds, double each_s) {
  const double most = 1e6, count = seconds / each_s;
  return count < 1 ? 1 : count > most ? (int)most : (int)count;
}

// With more ranks an iteration takes longer.
static int iterations_of_pass(int places) {
  const int iterations = places > pass_ranks ? (int)((long)given.pass * pass_ranks / places) : given.pass;
  return iterations > 0 ? iterations : 1;
}

// Of all kinds of congestors, one after the other.
static double pass_seconds(double block_s) {
  double seconds = 0;
  for (int kind = 0; kind < kind_count; ++kind) {
    const int places = (job.congestor_nodes + kind_count - 1 - kind) / kind_count;
    const double blocks = (double)(places - 1) * (kind == exchanges ? places : 1) * job.ppn;
    seconds += (iterations_of_pass(places) + 1) * blocks * block_s;
  }
  return seconds;
}

static void print_budget(void) {
  printf("budget of %d s: %d exchanges of 8 B behind %d that do not count, %d of 131072 B, %d allreduces",
         given.budget_s, given.iterations[of_latency], given.warmup, given.iterations[of_bandwidth],
         given.iterations[of_allreduce]);
  if (is_wanted(alltoall)) printf(", %d alltoalls", iterations_of(alltoall));
  if (job.congestor_nodes > 0) printf(", %d passes of each congestor alone", given.passes);
  printf("\n");
  fflush(stdout);
}

// Counts that take about as much wall time under dryfly, as much for each test. An estimate, so that the same command
// gives the same counts: 20 us a message of these ranks, and 0.45 us for each of 4 hops of each 2 KiB, on the computer
// that docs/guide/benchmarks.md names; beside congestors all is done twice, and a fifth of it is theirs; a twelfth of
// the whole is for the congestors alone.
static void spend_budget(void) {
  const double message_s = 20e-6, kib2_s = 4 * 0.45e-6, with_congestors = 2.4, for_congestors = 1.0 / 12;
  const double block_s = message_s + 2 * kib2_s;
  const int places = job.nodes - job.congestor_nodes, ranks = places * job.ppn;
  double tests_s = given.budget_s;
  if (job.congestor_nodes > 0) {
    given.passes = within(given.budget_s * for_congestors, pass_seconds(block_s));
    tests_s *= (1 - for_congestors) / with_congestors;
  }
  int rounds = 0, wanted = 0;
  while ((1 << rounds) < places) ++rounds;
  for (int test = 0; test < test_count; ++test) wanted += is_wanted(test);
  const double collective_s = tests_s / wanted, ring_s = collective_s / given.rings;
  const double exchange_s = 2 * ranks * message_s;
  const double window_s = ranks * (2 * outstanding * (message_s + 64 * kib2_s) + rounds * message_s);
  const double alltoall_s = ranks * (places - 1) * block_s;
  given.warmup = given.iterations[of_latency] = within(ring_s / 2, exchange_s);
  given.iterations[of_bandwidth] = within(ring_s - window_s, window_s);  // one does not count
  given.iterations[of_allreduce] = within(collective_s, ranks * rounds * message_s);
  const int alltoalls = within(collective_s - alltoall_s, alltoall_s);
  const double as_of_few = places > alltoall_ranks ? (double)places / alltoall_ranks : 1;
  given.iterations[of_alltoall] = (int)(alltoalls * as_of_few + 0.999);
  if (my_rank == 0) print_budget();
}

// --- The congestors

static void exchange_all(void) {
  const int power_of_two = (job.places & (job.places - 1)) == 0;
  for (int step = 1; step < job.places; ++step) {
    const int to = power_of_two ? job.place ^ step : (job.place + step) % job.places;
    const int from = power_of_two ? to : (job.place + job.places - step) % job.places;
    MPI_Sendrecv(block(to_send, to), block_bytes, MPI_CHAR, to, 1, block(received, from), block_bytes, MPI_CHAR, from,
                 1, job.slice, MPI_STATUS_IGNORE);
  }
}

static void send_to_one(MPI_Request* requests) {
  if (job.place != 0) {
    MPI_Send(block(to_send, 0), block_bytes, MPI_CHAR, 0, 1, job.slice);
    return;
  }
  for (int from = 1; from < job.places; ++from)
    MPI_Irecv(block(received, from), block_bytes, MPI_CHAR, from, 1, job.slice, &requests[from - 1]);
  MPI_Waitall(job.places - 1, requests, MPI_STATUSES_IGNORE);
}

static void congest_once(MPI_Request* requests) {
  if (job.kind == exchanges) {
    exchange_all();
  } else if (job.kind == incast) {
    send_to_one(requests);
  } else if (job.place != 0) {
    if (job.kind == put_incast)
      MPI_Put(block(to_send, 0), block_bytes, MPI_CHAR, 0, (MPI_Aint)job.place * block_bytes, block_bytes, MPI_CHAR,
              window);
    else
      MPI_Get(block(received, 0), block_bytes, MPI_CHAR, 0, 0, block_bytes, MPI_CHAR, window);
    MPI_Win_flush(0, window);
  }
}

static void congest(MPI_Request* requests) {
  for (int i = 0; i < iterations_of_pass(job.places); ++i) congest_once(requests);
}

static int one_sided(void) { return job.kind == put_incast || job.kind == get_bcast; }

static void check_congestion(void) {
  const int all = job.place == 0 && job.kind == incast;
  for (int from = 0; from < job.places; ++from)
    if (from != job.place && (all || job.kind == exchanges))
      check_words(block(received, from), block_bytes, from, job.place, job.kind, 0);
  if (job.kind == get_bcast && job.place != 0) check_words(block(received, 0), block_bytes, 0, 0, job.kind, 0);
  if (job.kind == put_incast && job.place == 0)
    for (int from = 1; from < job.places; ++from)
      check_words(block(window_memory, from), block_bytes, from, 0, job.kind, 0);
}

static void begin_congestion(void) {
  if (one_sided() && job.place != 0) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
}

static void end_congestion(void) {
  if (one_sided() && job.place != 0) MPI_Win_unlock(0, window);
  if (one_sided()) MPI_Barrier(job.slice);
  check_congestion();
}

// Until the tests are over; all ranks of a kind do as much.
static void run_congestor(void) {
  MPI_Request* requests = memory_for((size_t)job.places, sizeof *requests);
  begin_congestion();
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
  end_congestion();
  free(requests);
}

// Passes of which each is behind an iteration that does not count. The one rank that all others send to or get from
// has no figure.
static struct figures run_alone(void) {
  MPI_Request* requests = memory_for((size_t)job.places, sizeof *requests);
  const int iterations = iterations_of_pass(job.places), has_figure = job.kind == exchanges || job.place != 0;
  double* times = memory_for((size_t)given.passes * (size_t)iterations, sizeof(double));
  begin_congestion();
  for (int pass = 0; pass < given.passes; ++pass) {
    MPI_Barrier(job.side);
    for (int i = -1; i < iterations; ++i) {
      const double began = MPI_Wtime();
      congest_once(requests);
      const double took = MPI_Wtime() - began;
      if (i >= 0) times[(size_t)pass * (size_t)iterations + (size_t)i] = has_figure ? took : -1;
    }
  }
  end_congestion();
  const double blocks = job.kind == exchanges ? job.places - 1 : 1;
  const struct unit rate = {blocks * block_bytes / (1024 * 1024), 0};
  const struct figures figures = figures_of(rate, times, given.passes, iterations);
  free(times);
  free(requests);
  return figures;
}

// One kind after the other, with the network to itself.
static void run_congestors_alone(struct figures* figures) {
  for (int kind = 0; kind < kind_count; ++kind) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (job.kind == kind) figures[kind] = run_alone();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void make_window(size_t bytes) {
  MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, job.slice, &window_memory, &window);
  if (bytes > 0) memset(window_memory, 0, bytes);
}

static int has_window(void) { return job.is_congestor ? one_sided() : is_wanted(put) || is_wanted(get_latency); }

static void make_buffers(void) {
  const size_t in_rings = (size_t)2 * outstanding * large, of_blocks = (size_t)job.places * block_bytes;
  const size_t both = of_blocks > in_rings ? of_blocks : in_rings;
  received = memory_for(job.is_congestor ? of_blocks : both, 1);
  to_send = memory_for(job.is_congestor || of_blocks > 2 * large ? of_blocks : 2 * large, 1);
  if (job.is_congestor)
    for (int to = 0; to < job.places; ++to) fill_words(block(to_send, to), block_bytes, job.place, to, job.kind, 0);
  if (!has_window()) return;
  if (!job.is_congestor) {
    make_window((size_t)word_in_window(2));
    for (int side = 0; side < 2; ++side)
      fill_words(window_memory + word_in_window(side), small, job.place, side, in_window, 0);
  } else {
    make_window(job.place == 0 ? of_blocks : 0);
    if (job.place == 0 && job.kind == get_bcast) fill_words(window_memory, block_bytes, 0, 0, job.kind, 0);
  }
  MPI_Barrier(job.slice);
}

// --- What is printed

static const char dashes[] = "------------------------------------------------------------------------------";

// In the middle, or as near to it on its left as can be.
static void print_title(const char* title) {
  const int before = (76 - (int)strlen(title)) / 2;
  printf("\n+%s+\n| %*s%-*s |\n", dashes, before, "", 76 - before, title);
}

static const char bar[] = "+---------------------------------+--------------+--------------+--------------+";

static void begin_figures(const char* title) {
  print_title(title);
  printf("%s\n| %31s | %12s | %12s | %12s |\n%s\n", bar, "Name", "Avg", "99%", "Units", bar);
}

static void print_figures(const char* name, struct figures figures, int is_rate) {
  printf("| %31s | %12.1f | %12.1f | %12s |\n%s\n", name, figures.mean, figures.p99, is_rate ? "MiB/s/rank" : "usec",
         bar);
}

static void print_table(const char* title, const struct figures* figures) {
  begin_figures(title);
  for (int test = 0; test < test_count; ++test)
    if (is_wanted(test)) print_figures(tests[test].name, figures[test], tests[test].parts == 0);
}

// How many times worse it is beside the congestors.
static struct figures factors(int test, struct figures alone, struct figures beside) {
  if (tests[test].parts == 0) return (struct figures){alone.mean / beside.mean, alone.p99 / beside.p99};
  return (struct figures){beside.mean / alone.mean, beside.p99 / alone.p99};
}

static double as_printed(double value) {
  char text[64];
  snprintf(text, sizeof text, "%.1f", value);
  return atof(text);
}

static struct figures both_as_printed(struct figures figures) {
  return (struct figures){as_printed(figures.mean), as_printed(figures.p99)};
}

static void print_factors(const struct figures* alone, const struct figures* beside) {
  static const char in_two[] = "+---------------------------------+--------------------------------------------+";
  static const char in_three[] = "+---------------------------------+----------------------+---------------------+";
  print_title("Network Tests running with Congestion Tests - Key Results");
  printf("%s\n| %31s | %42s |\n%s\n", in_two, "Name", "Congestion Impact Factor", in_three);
  printf("| %31s | %20s | %19s |\n%s\n", "", "Avg", "99%", in_three);
  for (int test = 0; test < test_count; ++test) {
    if (!is_wanted(test)) continue;
    const struct figures factor = factors(test, both_as_printed(alone[test]), both_as_printed(beside[test]));
    printf("| %31s | %19.1fX | %18.1fX |\n%s\n", tests[test].name, factor.mean, factor.p99, in_three);
  }
}

static void write_each(const char* key, struct figures figures, int is_first) {
  fprintf(json, "%s\"%s\": {\"mean\": %.6f, \"p99\": %.6f}", is_first ? "" : ", ", key, figures.mean, figures.p99);
}

static void write_figures(const char* name, const struct figures* figures) {
  fprintf(json, ",\n  \"%s\": {", name);
  for (int test = 0; test < test_count; ++test)
    if (is_wanted(test)) write_each(tests[test].key, figures[test], test == 0);
  fprintf(json, "}");
}

static void write_units(void) {
  fprintf(json, ",\n  \"units\": {");
  for (int test = 0; test < test_count; ++test)
    if (is_wanted(test))
      fprintf(json, "%s\"%s\": \"%s\"", test > 0 ? ", " : "", tests[test].key,
              tests[test].parts == 0 ? "MiB/s/rank" : "us");
  if (job.congestor_nodes > 0) fprintf(json, ", \"congestors\": \"MiB/s/rank\"");
  fprintf(json, "}");
}

static void write_json(const struct results* results) {
  fprintf(json,
          ",\n  \"tests\": \"%s\", \"nodes\": %d, \"congestor_nodes\": %d, \"rings\": %d, "
          "\"iterations\": [%d, %d, %d], \"alltoalls\": %d, \"pass\": %d, \"passes\": %d, \"seed\": %d",
          suite_names[given.tests], job.nodes, job.congestor_nodes, given.rings, given.iterations[of_latency],
          given.iterations[of_bandwidth], given.iterations[of_allreduce], iterations_of(alltoall), given.pass,
          given.passes, given.seed);
  write_units();
  write_figures("isolated", results->tests[0]);
  if (job.congestor_nodes > 0) {
    fprintf(json, ",\n  \"congestors\": {");
    for (int kind = 0; kind < kind_count; ++kind) write_each(kind_keys[kind], results->congestors[kind], kind == 0);
    fprintf(json, "}");
    struct figures factor[test_count];
    for (int test = 0; test < test_count; ++test)
      factor[test] = factors(test, results->tests[0][test], results->tests[1][test]);
    write_figures("congested", results->tests[1]);
    write_figures("factors", factor);
  }
  fprintf(json, ",\n  \"wrong\": %ld", wrong);
}

static void print_results(const struct results* results) {
  printf("GPCNeT's tests: %d ranks on %d nodes, %d of them with congestors\n", rank_count, job.nodes,
         job.congestor_nodes);
  print_table("Isolated Network Tests", results->tests[0]);
  if (job.congestor_nodes > 0) {
    begin_figures("Isolated Congestion Tests");
    for (int kind = 0; kind < kind_count; ++kind) print_figures(kind_names[kind], results->congestors[kind], 1);
    print_table("Network Tests running with Congestion Tests", results->tests[1]);
    print_factors(results->tests[0], results->tests[1]);
  }
  fflush(stdout);
  if (json != NULL) write_json(results);
}

// --- What is asked for

static void help(const char* name) {
  if (my_rank == 0)
    printf(
        "%s [OPTIONS]\n"
        "  --tests load|network|all  those of GPCNeT's network_load_test, alone and beside congestors; those of its\n"
        "                            network_test, on all nodes; all of them, alone and beside congestors (load)\n"
        "  --congestors SHARE        of the nodes, 0 to 0.9; 0: all nodes run the tests (0.4; of --tests network 0)\n"
        "  --rings N                 random rings of a test (1)\n"
        "  --warmup N                exchanges of 8 B before those that count (200)\n"
        "  --latency-iterations N    in a ring (200)\n"
        "  --bandwidth-iterations N  in a ring (8)\n"
        "  --allreduces N            (200)\n"
        "  --alltoalls N             of up to 64 nodes; of more fewer (64)\n"
        "  --passes N                of each congestor alone (1)\n"
        "  --budget SECONDS          of wall time under dryfly, as an estimate, in place of these six counts\n"
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
  if (end == text || *end != '\0' || !(value == 0 || (value >= 0.001 && value <= 0.9)))
    refuse("--congestors", "accepted is 0, or a share of the nodes from 0.001 to 0.9");
  return value;
}

static void require_agreement(void) {
  if (given.budget_s > 0 && given.counted)
    refuse("--budget",
           "accepted is it without --warmup, --latency-iterations, --bandwidth-iterations, --allreduces, --alltoalls, "
           "--passes");
  if (given.tests == network_test && given.congestors > 0)
    refuse("--congestors", "accepted with --tests network is 0; --tests all has these tests beside congestors");
}

static void read_arguments(int argc, char** argv) {
  static const struct option names[] = {{"tests", required_argument, NULL, 't'},
                                        {"congestors", required_argument, NULL, 'c'},
                                        {"rings", required_argument, NULL, 'r'},
                                        {"warmup", required_argument, NULL, 'x'},
                                        {"latency-iterations", required_argument, NULL, 'l'},
                                        {"bandwidth-iterations", required_argument, NULL, 'b'},
                                        {"allreduces", required_argument, NULL, 'a'},
                                        {"alltoalls", required_argument, NULL, 'A'},
                                        {"passes", required_argument, NULL, 'n'},
                                        {"budget", required_argument, NULL, 'B'},
                                        {"pass", required_argument, NULL, 'p'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"check", required_argument, NULL, 'k'},
                                        {"json", required_argument, NULL, 'j'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  static const char letters[] = "lbaArpnB";  // of the counts, in their order
  int* const counts[] = {&given.iterations[of_latency],
                         &given.iterations[of_bandwidth],
                         &given.iterations[of_allreduce],
                         &given.iterations[of_alltoall],
                         &given.rings,
                         &given.pass,
                         &given.passes,
                         &given.budget_s};
  opterr = 0;
  for (int option, which; (option = getopt_long(argc, argv, ":h", names, &which)) != -1;) {
    const char* const at = strchr(letters, option);
    char name[32] = "";
    if (option != ':' && option != '?' && option != 'h') snprintf(name, sizeof name, "--%s", names[which].name);
    if (strchr("lbaAnx", option) != NULL) given.counted = 1;
    if (at != NULL)
      *counts[at - letters] = whole(name, optarg, 1);
    else if (option == 't')
      given.tests = (enum suite)one_of(name, optarg, suite_names, 3);
    else if (option == 'c')
      given.congestors = share(optarg);
    else if (option == 'x')
      given.warmup = whole(name, optarg, 0);
    else if (option == 's')
      given.seed = whole(name, optarg, 0);
    else if (option == 'k')
      given.check = one_of(name, optarg, (const char* const[]){"0", "1"}, 2);
    else if (option == 'j')
      given.json = optarg;
    else if (option == 'h')
      help(argv[0]);
    else
      refuse(argv[optind - 1], option == ':' ? "a value is missing" : "no such option; -h lists them");
  }
  if (optind < argc) refuse(argv[optind], "only options are accepted; -h lists them");
  require_agreement();
}

// Each figure is known to one rank, and nought on all others.
static void bring_together(struct results* results) {
  struct results all;
  MPI_Reduce(results, &all, (int)(sizeof all / sizeof(double)), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (my_rank == 0) *results = all;
  long sum = 0;
  MPI_Reduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  wrong = sum;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  read_arguments(argc, argv);
  int local = 0;
  divide(&local);
  if (given.budget_s > 0) spend_budget();
  open_json(given.json);
  make_buffers();
  struct results results = {0};
  for (int loaded = 0; loaded < (job.congestor_nodes > 0 ? 2 : 1); ++loaded) {
    if (loaded) run_congestors_alone(results.congestors);
    for (int test = 0; test < test_count; ++test) {
      if (!is_wanted(test)) continue;
      if (!job.is_congestor)
        results.tests[loaded][test] = run_test(test, local, loaded);
      else if (loaded)
        run_congestor();
    }
  }
  bring_together(&results);
  if (my_rank == 0) print_results(&results);
  any_wrong = wrong != 0;
  if (has_window()) MPI_Win_free(&window);
  return finish(given.json);
}
