// Calls MPI in the ways whose costs `dryfly mpi measure` counts: each call at several sizes, a few times each. It prints
// nothing and checks nothing. 4 to 8 ranks; a small number of repetitions is enough, for instructions are counted
// and not timed.
#include <mpi.h>
#include <stdlib.h>

enum { most_ranks = 8, window = 8, largest = 65536, again = 2 };
static const int sizes[] = {8, 512, 8192, 65536};

static int rank_of_me, rank_count, left, right;
static char *mine, *theirs;
static int counts[most_ranks], places[most_ranks];
static MPI_Request requests[2 * window];
#define SUM MPI_DOUBLE, MPI_SUM
#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE

static void pairs(int size) {
  MPI_Status status;
  int flag, index, indices[2 * window], given;
  const int peer = rank_of_me ^ 1, first = rank_of_me < peer;
  if (first) {
    MPI_Send(mine, size, MPI_CHAR, peer, 0, WORLD);
    MPI_Recv(theirs, size, MPI_CHAR, peer, 0, WORLD, IGNORE);
    MPI_Ssend(mine, size, MPI_CHAR, peer, 0, WORLD);
  } else {
    MPI_Recv(theirs, size, MPI_CHAR, peer, 0, WORLD, IGNORE);
    MPI_Send(mine, size, MPI_CHAR, peer, 0, WORLD);
    MPI_Probe(peer, 0, WORLD, &status);
    MPI_Recv(theirs, size, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, IGNORE);
  }
  MPI_Sendrecv(mine, size, MPI_CHAR, right, 0, theirs, size, MPI_CHAR, left, 0, WORLD, IGNORE);
  // Windows of receives and sends, completed in each of the ways there are.
  for (int way = 0; way < 6; ++way) {
    for (int i = 0; i < window; ++i) MPI_Irecv(theirs, size, MPI_CHAR, left, 0, WORLD, &requests[i]);
    for (int i = 0; i < window; ++i) {
      if (way == 5) MPI_Issend(mine, size, MPI_CHAR, right, 0, WORLD, &requests[window + i]);
      else MPI_Isend(mine, size, MPI_CHAR, right, 0, WORLD, &requests[window + i]);
    }
    switch (way) {
      case 1:
        for (int i = 0; i < 2 * window; ++i) MPI_Wait(&requests[i], IGNORE);
        break;
      case 2:
        for (int i = 0; i < 2 * window; ++i) MPI_Waitany(2 * window, requests, &index, IGNORE);
        break;
      case 3:
        for (int done = 0; done < 2 * window; done += given)
          MPI_Waitsome(2 * window, requests, &given, indices, MPI_STATUSES_IGNORE);
        break;
      case 4:
        for (int i = 0; i < 8; ++i) MPI_Test(&requests[0], &flag, IGNORE);
        for (int i = 0; i < 4; ++i) MPI_Testall(2 * window, requests, &flag, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 4; ++i) MPI_Testany(2 * window, requests, &index, &flag, IGNORE);
        for (int i = 0; i < 4; ++i) MPI_Testsome(2 * window, requests, &given, indices, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 4; ++i) MPI_Iprobe(left, 7, WORLD, &flag, IGNORE);
        MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
        break;
      default:
        MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
    }
  }
  MPI_Recv_init(theirs, size, MPI_CHAR, left, 0, WORLD, &requests[0]);
  MPI_Send_init(mine, size, MPI_CHAR, right, 0, WORLD, &requests[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void collectives(int size) {
  const int doubles = size / 8, each = doubles / rank_count > 0 ? doubles / rank_count : 1;
  for (int i = 0; i < rank_count; ++i) {
    counts[i] = each;
    places[i] = i * each;
  }
  MPI_Barrier(WORLD);
  MPI_Bcast(mine, size, MPI_CHAR, 0, WORLD);
  MPI_Reduce(mine, theirs, doubles, SUM, 0, WORLD);
  MPI_Allreduce(mine, theirs, doubles, SUM, WORLD);
  MPI_Gather(mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE, 0, WORLD);
  MPI_Gatherv(mine, each, MPI_DOUBLE, theirs, counts, places, MPI_DOUBLE, 0, WORLD);
  MPI_Scatter(mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE, 0, WORLD);
  MPI_Scatterv(mine, counts, places, MPI_DOUBLE, theirs, each, MPI_DOUBLE, 0, WORLD);
  MPI_Allgather(mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE, WORLD);
  MPI_Allgatherv(mine, each, MPI_DOUBLE, theirs, counts, places, MPI_DOUBLE, WORLD);
  MPI_Alltoall(mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE, WORLD);
  MPI_Alltoallv(mine, counts, places, MPI_DOUBLE, theirs, counts, places, MPI_DOUBLE, WORLD);
  MPI_Reduce_scatter(mine, theirs, counts, SUM, WORLD);
  MPI_Reduce_scatter_block(mine, theirs, each, SUM, WORLD);
  MPI_Scan(mine, theirs, doubles, SUM, WORLD);
  MPI_Exscan(mine, theirs, doubles, SUM, WORLD);
  MPI_Request request;
#define WAIT MPI_Wait(&request, IGNORE)
  MPI_Ibarrier(WORLD, &request), WAIT;
  MPI_Ibcast(mine, size, MPI_CHAR, 0, WORLD, &request), WAIT;
  MPI_Ireduce(mine, theirs, doubles, SUM, 0, WORLD, &request), WAIT;
  MPI_Iallreduce(mine, theirs, doubles, SUM, WORLD, &request), WAIT;
  MPI_Igather(mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE, 0, WORLD, &request), WAIT;
  MPI_Iscatter(mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE, 0, WORLD, &request), WAIT;
  MPI_Iallgather(mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE, WORLD, &request), WAIT;
  MPI_Ialltoall(mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE, WORLD, &request), WAIT;
}

static void memory(int size, MPI_Win win) {
  const int doubles = size / 8;
  double value = 1, was;
  MPI_Win_fence(0, win);
  MPI_Put(mine, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
  MPI_Get(mine, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE, win);
  MPI_Win_unlock(right, win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < window; ++i) MPI_Put(mine, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE, win);
  MPI_Win_flush(right, win);
  MPI_Get(mine, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE, win);
  MPI_Win_flush_local(right, win);
  if (size <= 1024) {
    MPI_Accumulate(mine, doubles, MPI_DOUBLE, right, 0, doubles, SUM, win);
    MPI_Win_flush(right, win);
    MPI_Fetch_and_op(&value, &was, MPI_DOUBLE, right, 0, MPI_SUM, win);
    MPI_Win_flush_all(win);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank_of_me);
  MPI_Comm_size(WORLD, &rank_count);
  if (rank_count < 2 || rank_count > most_ranks || rank_count % 2 != 0) MPI_Abort(WORLD, 2);
  left = (rank_of_me + rank_count - 1) % rank_count;
  right = (rank_of_me + 1) % rank_count;
  mine = calloc(largest, 1);
  theirs = calloc(largest, most_ranks);
  void* base;
  MPI_Win win;
  MPI_Win_allocate(largest, 8, MPI_INFO_NULL, WORLD, &base, &win);
  for (int turn = 0; turn < again; ++turn) {
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
      pairs(sizes[i]);
      collectives(sizes[i]);
      memory(sizes[i], win);
    }
    MPI_Comm half;
    MPI_Comm_split(WORLD, rank_of_me % 2, 0, &half);
    MPI_Comm_free(&half);
    MPI_Comm_dup(WORLD, &half);
    MPI_Comm_free(&half);
  }
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
