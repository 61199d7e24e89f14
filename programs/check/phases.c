// Phases of different kinds on a two-dimensional grid that is open at its ends, with data of one size that the ranks
// divide among them: `phases [cells=1024] [steps=6]`. A broadcast of the input; sweeps that begin at a corner; exchanges
// with four neighbours, sums over rows and a maximum over all; a gather at the end. For `dryfly extrapolate`.
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
  int rank, ranks, sides[2] = {0, 0}, open[2] = {0, 0}, place[2], low[2], high[2];
  MPI_Comm grid, row;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 2, sides);
  MPI_Cart_create(MPI_COMM_WORLD, 2, sides, open, 0, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, place);
  for (int i = 0; i < 2; ++i) MPI_Cart_shift(grid, i, 1, &low[i], &high[i]);
  MPI_Comm_split(grid, place[0], place[1], &row);

  int cells = number_of(argc, argv, "cells", 1024), steps = number_of(argc, argv, "steps", 6);
  int length[2] = {cells / sides[1], cells / sides[0]};  // of the side towards a neighbour in each dimension
  double* buffer = calloc((size_t)cells * 5, sizeof *buffer);
  MPI_Bcast(buffer, 4096, MPI_CHAR, 0, grid);
  for (int sweep = 0; sweep < 2; ++sweep) {
    for (int i = 0; i < 2; ++i) MPI_Recv(buffer, length[i], MPI_DOUBLE, low[i], 1, grid, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; ++i) MPI_Send(buffer, length[i], MPI_DOUBLE, high[i], 1, grid);
  }
  for (int step = 0; step < steps; ++step) {
    MPI_Request requests[8];
    for (int i = 0; i < 2; ++i) {
      MPI_Irecv(buffer + cells * i, length[i], MPI_DOUBLE, low[i], 2, grid, &requests[4 * i]);
      MPI_Irecv(buffer + cells * (i + 2), length[i], MPI_DOUBLE, high[i], 2, grid, &requests[4 * i + 1]);
      MPI_Isend(buffer + cells * 4, length[i], MPI_DOUBLE, low[i], 2, grid, &requests[4 * i + 2]);
      MPI_Isend(buffer + cells * 4, length[i], MPI_DOUBLE, high[i], 2, grid, &requests[4 * i + 3]);
    }
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    double mine = rank, sum = 0, most = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, row);
    MPI_Allreduce(&sum, &most, 1, MPI_DOUBLE, MPI_MAX, grid);
    double first = (double)(sides[0] - 1) * sides[1], wanted = first * sides[1] + sides[1] * (sides[1] - 1) / 2.0;
    if (most != wanted) {
      fprintf(stderr, "step %d: the largest sum of a row is %g, not %g\n", step, most, wanted);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  double* all = calloc((size_t)ranks * 16, sizeof *all);
  MPI_Gather(buffer, 16, MPI_DOUBLE, all, 16, MPI_DOUBLE, 0, grid);
  if (rank == 0) printf("%d cells, %d steps on %d x %d: ok\n", cells, steps, sides[0], sides[1]);
  free(all);
  free(buffer);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return 0;
}
