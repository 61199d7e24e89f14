// Point to point: each kind of send and receive, messages that are expected and such that are not, and each way to wait
// or to test for them.
#pragma once
#include "measure.h"

// Messages one way, and back: the receiver waits, or the message waits for it.
static void one_by_one(int size) {
  MPI_Status status;
  MPI_Message message;
  int found, flag;
  const int peer = rank_of_me ^ 1, first = rank_of_me < peer;
  for (int turn = 0; turn < 2; ++turn) {
    if (first == (turn == 0)) {
      MPI_Send(mine, size, MPI_CHAR, peer, 0, WORLD);
      MPI_Ssend(mine, size, MPI_CHAR, peer, 0, WORLD);
      MPI_Bsend(mine, size, MPI_CHAR, peer, 0, WORLD);
      MPI_Send(mine, size, MPI_CHAR, peer, 1, WORLD);
      MPI_Send(mine, size, MPI_CHAR, peer, 2, WORLD);
      MPI_Send(mine, size, MPI_CHAR, peer, 3, WORLD);
      MPI_Recv(theirs, 0, MPI_CHAR, peer, 4, WORLD, IGNORE);
      MPI_Rsend(mine, size, MPI_CHAR, peer, 5, WORLD);
    } else {
      MPI_Recv(theirs, size, MPI_CHAR, peer, 0, WORLD, IGNORE);
      MPI_Probe(peer, 0, WORLD, &status);
      MPI_Recv(theirs, size, MPI_CHAR, peer, 0, WORLD, IGNORE);
      MPI_Recv(theirs, size, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, IGNORE);
      MPI_Mprobe(peer, 1, WORLD, &message, &status);
      MPI_Mrecv(theirs, size, MPI_CHAR, &message, IGNORE);
      UNTIL(found, MPI_Improbe(peer, 2, WORLD, &found, &message, &status));
      MPI_Imrecv(theirs, size, MPI_CHAR, &message, &requests[0]);
      MPI_Wait(&requests[0], IGNORE);
      UNTIL(found, MPI_Iprobe(peer, 3, WORLD, &found, &status));
      MPI_Irecv(theirs, size, MPI_CHAR, peer, 3, WORLD, &requests[0]);
      UNTIL(flag, MPI_Test(&requests[0], &flag, IGNORE));
      MPI_Irecv(theirs, size, MPI_CHAR, peer, 5, WORLD, &requests[0]);
      MPI_Send(mine, 0, MPI_CHAR, peer, 4, WORLD);
      UNTIL(flag, MPI_Request_get_status(requests[0], &flag, IGNORE));
      MPI_Wait(&requests[0], IGNORE);
    }
  }
  MPI_Sendrecv(mine, size, MPI_CHAR, right, 0, theirs, size, MPI_CHAR, left, 0, WORLD, IGNORE);
  MPI_Sendrecv_replace(mine, size, MPI_CHAR, right, 0, left, 0, WORLD, IGNORE);
  MPI_Irecv(theirs, size, MPI_CHAR, left, 6, WORLD, &requests[0]);
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], IGNORE);
}

static void complete(int way) {
  int flag = 0, index, indices[2 * window], given;
  switch (way) {
    case 0:
      MPI_Waitall(2 * window, requests, ALL_IGNORED);
      break;
    case 1:
      for (int i = 0; i < 2 * window; ++i) MPI_Wait(&requests[i], IGNORE);
      break;
    case 2:
      for (int i = 0; i < 2 * window; ++i) MPI_Waitany(2 * window, requests, &index, IGNORE);
      break;
    case 3:
      for (int done = 0; done < 2 * window; done += given)
        MPI_Waitsome(2 * window, requests, &given, indices, ALL_IGNORED);
      break;
    case 4:
      UNTIL(flag, MPI_Testall(2 * window, requests, &flag, ALL_IGNORED));
      break;
    case 5:
      for (int i = 0; i < 2 * window; ++i) UNTIL(flag, MPI_Testany(2 * window, requests, &index, &flag, IGNORE));
      break;
    case 6:
      for (int done = 0; done < 2 * window; done += given)
        UNTIL(given, MPI_Testsome(2 * window, requests, &given, indices, ALL_IGNORED));
      break;
    default:
      for (int i = 0; i < 2 * window; ++i) UNTIL(flag, MPI_Test(&requests[i], &flag, IGNORE));
  }
}

// Receives that are posted before their messages come, or behind the sends of this rank, and the sends' kinds.
static void windows(int size, int way, int late) {
  for (int i = 0; i < window && !late; ++i) MPI_Irecv(theirs, size, MPI_CHAR, left, 0, WORLD, &requests[i]);
  if (late) MPI_Barrier(WORLD);
  for (int i = 0; i < window; ++i) {
    MPI_Request* request = &requests[window + i];
    if (way == 7) MPI_Issend(mine, size, MPI_CHAR, right, 0, WORLD, request);
    else if (way == 6 && i < 2) MPI_Ibsend(mine, size, MPI_CHAR, right, 0, WORLD, request);
    else if (way == 5 && i < 2 && !late) MPI_Irsend(mine, size, MPI_CHAR, right, 0, WORLD, request);
    else MPI_Isend(mine, size, MPI_CHAR, right, 0, WORLD, request);
  }
  if (late) {
    int flag;
    MPI_Iprobe(left, 7, WORLD, &flag, IGNORE);
    for (int i = 0; i < window; ++i)
      MPI_Irecv(theirs, size, MPI_CHAR, i % 2 ? left : MPI_ANY_SOURCE, 0, WORLD, &requests[i]);
  }
  complete(way);
}

// All receives together and then all sends, as a halo is exchanged, waited for apart.
static void halo(int size) {
  const int neighbors[] = {left, right};
  for (int i = 0; i < 2; ++i) MPI_Irecv(theirs + (size_t)i * largest, size, MPI_CHAR, neighbors[i], 0, WORLD, &requests[i]);
  for (int i = 0; i < 2; ++i) MPI_Send(mine, size, MPI_CHAR, neighbors[i], 0, WORLD);
  MPI_Waitall(2, requests, ALL_IGNORED);
  MPI_Irecv(theirs, size, MPI_CHAR, left, 0, WORLD, &requests[0]);
  MPI_Send(mine, size, MPI_CHAR, right, 0, WORLD);
  MPI_Wait(&requests[0], IGNORE);
}

static void persistent(int size) {
  MPI_Recv_init(theirs, size, MPI_CHAR, left, 0, WORLD, &requests[0]);
  MPI_Send_init(mine, size, MPI_CHAR, right, 0, WORLD, &requests[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, ALL_IGNORED);
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Wait(&requests[0], IGNORE);
    MPI_Wait(&requests[1], IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Recv_init(theirs, size, MPI_CHAR, left, 0, WORLD, &requests[0]);
  MPI_Ssend_init(mine, size, MPI_CHAR, right, 0, WORLD, &requests[1]);
  MPI_Bsend_init(mine, size, MPI_CHAR, right, 0, WORLD, &requests[2]);
  MPI_Start(&requests[0]);
  MPI_Start(&requests[1]);
  MPI_Waitall(2, requests, ALL_IGNORED);
  MPI_Start(&requests[0]);
  MPI_Start(&requests[2]);
  MPI_Wait(&requests[0], IGNORE);
  MPI_Wait(&requests[2], IGNORE);
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
}

static void pairs(int size) {
  one_by_one(size);
  for (int way = 0; way < 8; ++way) windows(size, way, 0);
  for (int way = 0; way < 2; ++way) windows(size, way, 1);
  halo(size);
  persistent(size);
}
