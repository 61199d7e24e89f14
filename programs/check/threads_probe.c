// Four threads of each of two ranks send, or probe and receive, many messages at once.
#include <pthread.h>
#include <stdint.h>

#include "check.h"

enum { threads = 4, messages = 200 };

static void* talk(void* number) {
  const int tag = (int)(intptr_t)number;
  for (int i = 0; i < messages; ++i) {
    int value = i;
    if (my_rank == 0) {
      MPI_Send(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
      continue;
    }
    MPI_Status status;
    MPI_Probe(0, tag, MPI_COMM_WORLD, &status);
    MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    REQUIRE_EQUAL(value, i, "what came");
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  pthread_t made[threads];
  for (intptr_t number = 1; number < threads; ++number) pthread_create(&made[number], NULL, talk, (void*)number);
  talk(0);
  for (int number = 1; number < threads; ++number) pthread_join(made[number], NULL);
  if (my_rank == 0) printf("ok threads_probe\n");
  MPI_Finalize();
  return 0;
}
