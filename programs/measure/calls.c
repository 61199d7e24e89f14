// Calls MPI in the ways whose costs `dryfly mpi measure` counts: each call at several sizes, a few times each. It prints
// nothing and checks nothing. 8 ranks; a small number of repetitions is enough, for instructions are counted
// and not timed. With the argument `node`, on four, only what goes through the memory of a node as well; with `wide`, on 16,
// only blocking collectives.
#include "collectives.h"
#include "data.h"
#include "memory.h"
#include "pairs.h"

#include <string.h>

int main(int argc, char** argv) {
  static const int sizes[] = {8, 512, 8192, largest};
  const unsigned size_count = sizeof sizes / sizeof sizes[0];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank_of_me);
  MPI_Comm_size(WORLD, &rank_count);
  if (rank_count < 4 || rank_count > most_ranks || rank_count % 2 != 0) MPI_Abort(WORLD, 2);
  left = (rank_of_me + rank_count - 1) % rank_count;
  right = (rank_of_me + 1) % rank_count;
  mine = calloc(largest, most_ranks);
  theirs = calloc(largest, most_ranks);
  if (argc > 1 && strcmp(argv[1], "wide") == 0) {
    wide_collectives();
    MPI_Finalize();
    return 0;
  }
  enum { room = 16 * largest };
  void* attached = malloc(room);
  MPI_Buffer_attach(attached, room);
  const int all = argc < 2 || strcmp(argv[1], "node") != 0;
  MPI_Comm six;  // no power of two
  MPI_Comm_split(WORLD, all && rank_of_me < 6 ? 0 : MPI_UNDEFINED, 0, &six);
  for (unsigned i = 0; i < size_count; ++i) {
    pairs(sizes[i]);
    collectives(WORLD, sizes[i], 0);
    if (!all) continue;
    if (six != MPI_COMM_NULL) collectives(six, sizes[i], 1);
    neighbors(WORLD, sizes[i]);
    if (i < 3) persistent_collectives(sizes[i] / 8, sizes[i] / 8);
    if (i < 2) communicators();  // these know no sizes
  }
  if (all) {
    long_collectives();
    layouts();
    reductions();
  }
  // Once there is a window a library may poll in more places, from then on and in all calls.
  void* base;
  MPI_Win win;
  MPI_Win_allocate(largest, 8, MPI_INFO_NULL, WORLD, &base, &win);
  for (unsigned i = 0; i < size_count; ++i) {
    memory(sizes[i], win);
    if (all && i % 2 == 0) {
      windows_of_memory();
      pairs(sizes[i]);
      collectives(WORLD, sizes[i], 0);
    }
  }
  MPI_Win_free(&win);
  if (six != MPI_COMM_NULL) MPI_Comm_free(&six);
  MPI_Buffer_detach(&attached, &(int){0});
  MPI_Finalize();
  return 0;
}
