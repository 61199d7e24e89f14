// The main thread asks again and again whether what another thread completes, which sleeps for four seconds, is complete.
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static MPI_Request request;

static int answer(void* unused, MPI_Status* status) {
  (void)unused;
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  MPI_Status_set_cancelled(status, 0);
  return MPI_Status_set_elements(status, MPI_BYTE, 0);
}
static int forget(void* unused) { return (void)unused, MPI_SUCCESS; }
static int cancel(void* unused, int complete) { return (void)unused, (void)complete, MPI_SUCCESS; }

static void* complete(void* unused) {
  sleep(4);
  MPI_Grequest_complete(request);
  return unused;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Grequest_start(answer, forget, cancel, NULL, &request);
  const MPI_Request asked = request;
  const double began = MPI_Wtime();
  pthread_t sleeper;
  REQUIRE(pthread_create(&sleeper, NULL, complete, NULL) == 0, "no thread");
  MPI_Request left = asked;
  for (int flag = 0; flag == 0;) MPI_Test(&left, &flag, MPI_STATUS_IGNORE);
  const double took = MPI_Wtime() - began;
  pthread_join(sleeper, NULL);
  REQUIRE(took > 3.8 && took < 4.2, "four seconds took %g s", took);
  if (my_rank == 0) printf("ok threads_test\n");
  MPI_Finalize();
  return 0;
}
