// Messages that nobody waits for: `unexpected [messages=1000] [receives=0] [bytes=8] [order=1] [away=0]`.
// Rank 0 posts `receives` receives that are not matched until the end; then the last rank sends it `messages` messages
// and a last one. Rank 0 works for `away` us without calling MPI, waits for the last one while the others lie in its
// unexpected list, and then receives all of them, in the order of sending (order=1) or backwards (order=0), checks
// each, and prints how long that took. What this needs of the NIC is in `matching` of dryfly's result; with too few
// list entries the run ends as it would on the machine.
#include <time.h>

#include "micro.h"

enum { last_tag = 30000, posted_tag = 30001 };

static void receive_all(int messages, int bytes, int in_order, char* buffer) {
  for (int i = 0; i < messages; ++i) {
    int number = in_order ? i : messages - 1 - i, got;
    MPI_Status status;
    MPI_Recv(buffer, bytes, MPI_CHAR, rank_count - 1, number % last_tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &got);
    // Of messages with one tag the oldest comes first, in whatever order they are asked for.
    int expected = in_order || messages <= last_tag ? number : -1;
    if (got != bytes || (bytes >= 4 && expected >= 0 && memcmp(buffer, &expected, 4) != 0)) {
      fprintf(stderr, "message %d has the wrong content\n", number);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int messages = argument(argc, argv, "messages", 1000, 0), receives = argument(argc, argv, "receives", 0, 0);
  int bytes = argument(argc, argv, "bytes", 8, 0), in_order = argument(argc, argv, "order", 1, 0);
  int away = argument(argc, argv, "away", 0, 0);
  int sender = rank_count - 1;
  char* buffer = buffer_of((size_t)bytes + 4);
  MPI_Request* posted = (MPI_Request*)buffer_of((size_t)receives * sizeof(MPI_Request));
  MPI_Barrier(MPI_COMM_WORLD);
  double seconds = 0;
  if (my_rank != 0) MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank == sender) {
    for (int i = 0; i < messages; ++i) {
      memcpy(buffer, &i, 4);
      MPI_Send(buffer, bytes, MPI_CHAR, 0, i % last_tag, MPI_COMM_WORLD);
    }
    MPI_Send(buffer, 0, MPI_CHAR, 0, last_tag, MPI_COMM_WORLD);
    for (int i = 0; i < receives; ++i) MPI_Send(buffer, 0, MPI_CHAR, 0, posted_tag, MPI_COMM_WORLD);
  } else if (my_rank == 0) {
    for (int i = 0; i < receives; ++i) MPI_Irecv(NULL, 0, MPI_CHAR, sender, posted_tag, MPI_COMM_WORLD, &posted[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    struct timespec work = {away / 1000000, away % 1000000 * 1000L};
    if (away > 0) nanosleep(&work, NULL);
    MPI_Recv(buffer, 0, MPI_CHAR, sender, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    seconds = MPI_Wtime();
    receive_all(messages, bytes, in_order, buffer);
    seconds = MPI_Wtime() - seconds;
    MPI_Waitall(receives, posted, MPI_STATUSES_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank == 0)
    printf("unexpected: %d messages of %d B taken in %.3f us, beside %d receives\n", messages, bytes, seconds * 1e6,
           receives);
  free(posted);
  free(buffer);
  MPI_Finalize();
}
