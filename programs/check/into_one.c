// Large messages or windows into rank 0 from all others at a time, 16 of a megabyte from each; prints the rate at rank
// 0 in GB/s. `messages`: MPI_Isend; `put`: each other rank puts and flushes. The data is checked.
#include "check.h"

enum { bytes = 1 << 20, messages = 16 };

static double receive_all(char* into, int first_tag) {
  const int count = messages * (rank_count - 1);
  MPI_Request* requests = allocate(sizeof *requests * (size_t)count);
  for (int index = 0; index < count; ++index) {
    MPI_Irecv(into + (size_t)index * bytes, bytes, MPI_BYTE, 1 + index / messages, first_tag + index % messages,
              MPI_COMM_WORLD, &requests[index]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  free(requests);
  return MPI_Wtime() - start;
}

static void send_all(const char* from, int first_tag) {
  MPI_Request requests[messages];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int index = 0; index < messages; ++index) {
    MPI_Isend(from, bytes, MPI_BYTE, 0, first_tag + index, MPI_COMM_WORLD, &requests[index]);
  }
  MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
}

static double put_all(const char* from, MPI_Win window) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int index = 0; my_rank > 0 && index < messages; ++index) {
    const MPI_Aint place = ((MPI_Aint)(my_rank - 1) * messages + index) * bytes;
    MPI_Put(from, bytes, MPI_BYTE, 0, place, bytes, MPI_BYTE, window);
  }
  MPI_Win_flush(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  const int puts = argc > 1 && strcmp(argv[1], "put") == 0;
  const size_t all = (size_t)bytes * messages * (size_t)(rank_count - 1);
  char* sent = allocate(bytes);
  fill_bytes(sent, bytes, my_rank);
  char* into = NULL;
  double took = 0;
  MPI_Win window = MPI_WIN_NULL;
  if (puts) {
    MPI_Win_allocate(my_rank == 0 ? (MPI_Aint)all : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &into, &window);
    MPI_Win_lock_all(0, window);
  } else if (my_rank == 0) {
    into = allocate(all);
  }
  // The first round makes the connections.
  for (int round = 0; round < 2; ++round) {
    if (puts) {
      took = put_all(sent, window);
    } else if (my_rank == 0) {
      took = receive_all(into, round * messages);
    } else {
      send_all(sent, round * messages);
    }
  }
  if (puts) MPI_Win_unlock_all(window);
  for (int index = 0; my_rank == 0 && index < messages * (rank_count - 1); ++index) {
    require_bytes(into + (size_t)index * bytes, bytes, 1 + index / messages, "what came into rank 0");
  }
  if (my_rank == 0) printf("%.3f GB/s\n", (double)all / took / 1e9);
  if (puts) MPI_Win_free(&window);
  return check_end("into_one");
}
