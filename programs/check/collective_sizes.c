// Calls the collectives that its arguments name, one after the other: COLLECTIVE:BYTES, such as allreduce:8. Bytes are of
// the whole vector (bcast, reduce, allreduce) or of what goes from one rank to one other. Reductions add ints, the
// others move bytes; the root is rank 0. tests/mpi/test_run_collective_messages.py looks at what each call sends.
#include "check.h"

typedef struct {
  char* from;
  char* to;
  int* counts;
  int* displacements;
} Buffers;

static int named(const char* word, const char* name) {
  size_t length = strlen(name);
  return strncmp(word, name, length) == 0 && word[length] == ':';
}

static void set_counts(const Buffers* buffers, int count) {
  for (int rank = 0; rank < rank_count; ++rank) {
    buffers->counts[rank] = count;
    buffers->displacements[rank] = rank * count;
  }
}

static void call(const char* word, int bytes, const Buffers* buffers) {
  char *from = buffers->from, *to = buffers->to;
  int ints = bytes / (int)sizeof(int);
  MPI_Comm all = MPI_COMM_WORLD;
  if (named(word, "barrier")) {
    MPI_Barrier(all);
  } else if (named(word, "bcast")) {
    MPI_Bcast(from, bytes, MPI_BYTE, 0, all);
  } else if (named(word, "reduce")) {
    MPI_Reduce(from, to, ints, MPI_INT, MPI_SUM, 0, all);
  } else if (named(word, "allreduce")) {
    MPI_Allreduce(from, to, ints, MPI_INT, MPI_SUM, all);
  } else if (named(word, "allgather")) {
    MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, all);
  } else if (named(word, "allgatherv")) {
    set_counts(buffers, bytes);
    MPI_Allgatherv(from, bytes, MPI_BYTE, to, buffers->counts, buffers->displacements, MPI_BYTE, all);
  } else if (named(word, "reduce_scatter")) {
    set_counts(buffers, ints);
    MPI_Reduce_scatter(from, to, buffers->counts, MPI_INT, MPI_SUM, all);
  } else if (named(word, "reduce_scatter_block")) {
    MPI_Reduce_scatter_block(from, to, ints, MPI_INT, MPI_SUM, all);
  } else if (named(word, "alltoall")) {
    MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, all);
  } else if (named(word, "gather")) {
    MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, all);
  } else if (named(word, "scatter")) {
    MPI_Scatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, all);
  } else {
    REQUIRE(0, "%s: no such collective", word);
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  int most = 1;
  for (int word = 1; word < argc; ++word) {
    const char* colon = strchr(argv[word], ':');
    REQUIRE(colon != NULL, "%s: a collective and its bytes are COLLECTIVE:BYTES", argv[word]);
    if (atoi(colon + 1) > most) most = atoi(colon + 1);
  }
  size_t room = (size_t)most * (size_t)rank_count;
  size_t ranks = (size_t)rank_count;
  Buffers buffers = {calloc(room, 1), calloc(room, 1), calloc(ranks, sizeof(int)), calloc(ranks, sizeof(int))};
  REQUIRE(buffers.from && buffers.to && buffers.counts && buffers.displacements, "no memory for %zu bytes", room);
  for (int word = 1; word < argc; ++word) call(argv[word], atoi(strchr(argv[word], ':') + 1), &buffers);
  free(buffers.from);
  free(buffers.to);
  free(buffers.counts);
  free(buffers.displacements);
  MPI_Finalize();
  return 0;
}
