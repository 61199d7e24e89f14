// What it costs that NICs look up where pages are: `random_puts [window=67108864] [puts=10000] [bytes=8] [flush=64]
// [huge=0]`. Each rank has a window of so many bytes and puts so often into random places of random others' windows,
// with a flush after so many. huge=1: the windows are mapped with MAP_HUGETLB.
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>

#include "micro.h"

static uint64_t state;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  size_t window = (size_t)argument(argc, argv, "window", 1 << 26, 1);
  int puts = argument(argc, argv, "puts", 10000, 1);
  size_t bytes = (size_t)argument(argc, argv, "bytes", 8, 1);
  int flush = argument(argc, argv, "flush", 64, 1);
  int huge = argument(argc, argv, "huge", 0, 0);
  if (rank_count < 2 || bytes > window) micro_fail("2 ranks or more are needed, and a window of one put or more");
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (huge ? MAP_HUGETLB : 0);
  char* memory = mmap(NULL, window, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) micro_fail("there is no such memory");
  char* source = buffer_of(bytes);
  MPI_Win win;
  MPI_Win_create(memory, (MPI_Aint)window, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_lock_all(0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  state = 88172645463325252u + (uint64_t)my_rank;
  double start = MPI_Wtime();
  for (int i = 0; i < puts; ++i) {
    int other = (int)(next_random() >> 33) % (rank_count - 1);
    if (other >= my_rank) ++other;
    MPI_Aint place = (MPI_Aint)(next_random() % (window / bytes) * bytes);
    MPI_Put(source, (int)bytes, MPI_CHAR, other, place, (int)bytes, MPI_CHAR, win);
    if ((i + 1) % flush == 0) MPI_Win_flush_all(win);
  }
  MPI_Win_flush_all(win);
  if (my_rank == 0) printf("random_puts: %.3f us a put\n", (MPI_Wtime() - start) / puts * 1e6);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  munmap(memory, window);
  free(source);
  MPI_Finalize();
}
