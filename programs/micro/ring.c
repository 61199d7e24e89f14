// Random rings as GPCNeT has them: each rank exchanges messages with both neighbours of a random cycle, iteration by
// iteration, and with barrier=1 waits for all behind each. `ring [bytes=8] [rings=2] [warmup=1] [count=1]
// [outstanding=1] [barrier=0]`. Prints, of all ranks, rings and counted iterations, what a message takes (half of an
// exchange): mean, least, 99 % and most, in us. The cycles are those of the pattern `ring` of dryfly-generator.
#include <stdint.h>

#include "micro.h"

enum { most_outstanding = 64, to_right = 0, to_left = 1 };

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// As core/unit/random.hpp draws: stream (ring, 0, workload).
static void random_cycle(int* order, int size, uint64_t ring) {
  const uint64_t workload = 3;
  const uint64_t key = mix(mix(mix(ring) ^ 0) ^ workload);
  for (int i = 0; i < size; ++i) order[i] = i;
  for (int i = size - 1; i > 0; --i) {
    const uint64_t draw = mix(key ^ mix((uint64_t)i));
    const int other = (int)(((unsigned __int128)draw * (uint64_t)(i + 1)) >> 64);
    const int kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  const int bytes = argument(argc, argv, "bytes", 8, 1), rings = argument(argc, argv, "rings", 2, 1);
  const int warmup = argument(argc, argv, "warmup", 1, 0), count = argument(argc, argv, "count", 1, 1);
  const int outstanding = argument(argc, argv, "outstanding", 1, 1), barrier = argument(argc, argv, "barrier", 0, 0);
  if (outstanding > most_outstanding) micro_fail("outstanding: at most 64");
  char *send = buffer_of((size_t)bytes), *receive = buffer_of((size_t)bytes * 2 * (size_t)outstanding);
  int* order = (int*)buffer_of((size_t)rank_count * sizeof(int));
  double* own = (double*)buffer_of((size_t)(rings * count) * sizeof(double));
  MPI_Request requests[4 * most_outstanding];
  for (int ring = 0; ring < rings; ++ring) {
    random_cycle(order, rank_count, (uint64_t)ring);
    int place = 0;
    while (order[place] != my_rank) ++place;
    const int right = order[(place + 1) % rank_count], left = order[(place + rank_count - 1) % rank_count];
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = -warmup; i < count; ++i) {
      const double begin = MPI_Wtime();
      int open = 0;
      for (int n = 0; n < outstanding; ++n) {
        char* at = receive + (size_t)bytes * 2 * (size_t)n;
        MPI_Irecv(at, bytes, MPI_CHAR, left, to_right, MPI_COMM_WORLD, &requests[open++]);
        MPI_Irecv(at + bytes, bytes, MPI_CHAR, right, to_left, MPI_COMM_WORLD, &requests[open++]);
      }
      for (int n = 0; n < outstanding; ++n) {
        MPI_Isend(send, bytes, MPI_CHAR, left, to_left, MPI_COMM_WORLD, &requests[open++]);
        MPI_Isend(send, bytes, MPI_CHAR, right, to_right, MPI_COMM_WORLD, &requests[open++]);
      }
      MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
      if (barrier) MPI_Barrier(MPI_COMM_WORLD);
      if (i >= 0) own[ring * count + i] = (MPI_Wtime() - begin) * 1e6 / 2;
    }
  }
  const int each = rings * count;
  double* all = my_rank == 0 ? (double*)buffer_of((size_t)rank_count * (size_t)each * sizeof(double)) : NULL;
  MPI_Gather(own, each, MPI_DOUBLE, all, each, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (my_rank == 0) {
    const size_t values = (size_t)rank_count * (size_t)each;
    double sum = 0;
    for (size_t i = 0; i < values; ++i) sum += all[i];
    qsort(all, values, sizeof(double), by_size);
    printf("ring of %d B on %d ranks: mean %.4f least %.4f p99 %.4f most %.4f us\n", bytes, rank_count,
           sum / (double)values, all[0], all[values * 99 / 100], all[values - 1]);
    free(all);
  }
  free(own);
  free(order);
  free(receive);
  free(send);
  MPI_Finalize();
}
