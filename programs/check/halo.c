// Exchange with the six neighbours of a three-dimensional grid that is closed in all directions, and a norm:
// `halo [bytes=4096] [steps=20]`. Each rank checks what its neighbours have sent.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number_of(int argc, char** argv, const char* name, int usual) {
  size_t length = strlen(name);
  for (int i = 1; i < argc; ++i)
    if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') return atoi(argv[i] + length + 1);
  return usual;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, sides[3] = {0, 0, 0}, closed[3] = {1, 1, 1};
  MPI_Comm grid;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 3, sides);
  MPI_Cart_create(MPI_COMM_WORLD, 3, sides, closed, 0, &grid);
  MPI_Comm_rank(grid, &rank);
  int bytes = number_of(argc, argv, "bytes", 4096), steps = number_of(argc, argv, "steps", 20);
  char* buffer = malloc((size_t)bytes * 7);
  for (int step = 0; step < steps; ++step) {
    MPI_Request requests[12];
    char* sent = buffer + (size_t)bytes * 6;
    memset(sent, (rank + step) % 128, (size_t)bytes);
    int from[6], to;
    for (int side = 0; side < 6; ++side) {
      MPI_Cart_shift(grid, side / 2, side % 2 ? 1 : -1, &from[side], &to);
      MPI_Irecv(buffer + (size_t)bytes * (size_t)side, bytes, MPI_CHAR, from[side], side, grid, &requests[side]);
      MPI_Isend(sent, bytes, MPI_CHAR, to, side, grid, &requests[6 + side]);
    }
    MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
    int wrong = 0, all_wrong = 0;
    for (int side = 0; side < 6; ++side) {
      const char* got = buffer + (size_t)bytes * (size_t)side;
      wrong += bytes > 0 && (got[0] != (from[side] + step) % 128 || got[bytes - 1] != got[0]);
    }
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, grid);
    if (all_wrong != 0) {
      if (rank == 0) fprintf(stderr, "step %d: %d sides have the wrong content\n", step, all_wrong);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  if (rank == 0) printf("halo of %d B, %d steps on %d x %d x %d: ok\n", bytes, steps, sides[0], sides[1], sides[2]);
  free(buffer);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return 0;
}
