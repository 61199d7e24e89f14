// All ranks but the first send it messages of 8 KiB at a time, argv[1] each (512), and rank 0 has posted the receives.
// Rank 0 prints the rate of rank 1, and that of all together, in GB/s. The data is checked.
#include "check.h"

enum { bytes = 8192 };

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  const int messages = argc > 1 ? atoi(argv[1]) : 512;
  MPI_Request* requests = allocate(sizeof *requests * (size_t)messages * (size_t)rank_count);
  if (my_rank > 0) {
    char* sent = allocate(bytes);
    fill_bytes(sent, bytes, my_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < messages; ++i) MPI_Isend(sent, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    return check_end("class_shares");
  }
  const int count = messages * (rank_count - 1);
  char* into = allocate((size_t)count * bytes);
  for (int i = 0; i < count; ++i) {
    MPI_Irecv(into + (size_t)i * bytes, bytes, MPI_BYTE, 1 + i / messages, 0, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
  const double first = MPI_Wtime() - start;
  MPI_Waitall(count - messages, requests + messages, MPI_STATUSES_IGNORE);
  const double all = MPI_Wtime() - start;
  printf("first %.3f GB/s\nall %.3f GB/s\n", (double)messages * bytes / first / 1e9, (double)count * bytes / all / 1e9);
  for (int i = 0; i < count; ++i) require_bytes(into + (size_t)i * bytes, bytes, 1 + i / messages, "a message");
  return check_end("class_shares");
}
