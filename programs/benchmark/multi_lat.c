// Half of a round trip of all pairs at once; the figure is the mean over the pairs. With -f also how pairs differ, each
// by the mean of its round trips, and with --slowest which are the slowest and on which hosts.
#include "pair.h"

static char* hosts;       // of all ranks, on rank 0, with --slowest
static double* of_pairs;  // on rank 0, with -f or --slowest

static int slowest_first(const void* a, const void* b) {
  const int x = *(const int*)a, y = *(const int*)b;
  return of_pairs[x] != of_pairs[y] ? (of_pairs[x] < of_pairs[y]) - (of_pairs[x] > of_pairs[y]) : (x > y) - (x < y);
}

static void print_slowest(size_t size, const int* order) {
  const int shown = options.slowest < pairs ? options.slowest : pairs;
  for (int at = 0; at < shown; ++at) {
    const int pair = order[at];
    printf("# slow %zu: %.*f us, rank %d on %s and rank %d on %s\n", size, options.digits, of_pairs[pair], pair,
           host_of(hosts, pair), pair + pairs, host_of(hosts, pair + pairs));
  }
  fflush(stdout);
  if (!json_more("slowest")) return;
  for (int at = 0; at < shown; ++at) {
    const int pair = order[at];
    fprintf(json, "%s{\"ranks\": [%d, %d], \"hosts\": [", at == 0 ? "[" : ", ", pair, pair + pairs);
    json_text(host_of(hosts, pair));
    fprintf(json, ", ");
    json_text(host_of(hosts, pair + pairs));
    fprintf(json, "], \"mean_us\": ");
    json_number(of_pairs[pair]);
    fprintf(json, "}");
  }
  fprintf(json, "]");
}

// The least value that so many per cent of the pairs do not exceed.
static double percentile(const int* order, int percent) {
  const int place = (int)(((long)pairs * percent + 99) / 100);  // from the fastest on, beginning with 1
  return of_pairs[order[pairs - (place > 0 ? place : 1)]];
}

static void latency_of_size(size_t size) {
  char *out = buffer_of(size), *in = buffer_of(size);
  long wrong = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  double us = half_round_trip_us(out, in, (int)size, &wrong), sum = 0;
  if (!sends) us = 0;
  MPI_Reduce(&us, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  wrong = all_wrong(wrong);
  const int spread = (options.full || options.slowest) && !table.checking;
  if (spread) MPI_Gather(&us, 1, MPI_DOUBLE, of_pairs, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (my_rank == 0) {
    double figures[most_columns] = {sum / pairs};
    int* order = memory_for((size_t)pairs, sizeof *order);
    for (int pair = 0; pair < pairs; ++pair) order[pair] = pair;
    if (spread) qsort(order, (size_t)pairs, sizeof *order, slowest_first);
    for (int at = 0; options.full && spread && at < 5; ++at)
      figures[at + 1] = percentile(order, (const int[]){0, 50, 90, 99, 100}[at]);
    print_row(size, figures, wrong);
    if (options.slowest) print_slowest(size, order);
    free(order);
  }
  free_buffer(out);
  free_buffer(in);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  options.window = 0;
  read_options(argc, argv, "pfSd",
               "  -p, --pairs N                 pairs of ranks (all)\n"
               "  -f, --full                    also the fastest and the slowest pair, and percentiles of pairs\n"
               "      --slowest N               name the N slowest pairs of each size, in comments behind the "
               "row\n" HELP_OF_PLACES);
  many_pairs();
  add_column("Avg Latency(us)", "mean_us", 18);
  if (options.full) {
    add_column("Min Latency(us)", "min_us", 18);
    add_column("50%(us)", "p50_us", 12);
    add_column("90%(us)", "p90_us", 12);
    add_column("99%(us)", "p99_us", 12);
    add_column("Max Latency(us)", "max_us", 18);
  }
  begin_table("# MPI Multi Latency Test\n# [ pairs: %d ]", pairs);
  if (options.slowest) hosts = gather_hosts();
  if (my_rank == 0 && (options.full || options.slowest)) of_pairs = memory_for((size_t)rank_count, sizeof *of_pairs);
  int status = run(&(struct sweep){.unit = 1, .bytes = two_buffers, .measure = latency_of_size});
  free(hosts);
  free(of_pairs);
  return status;
}
