// Conjugate gradients as HPCG has them: `hpcg [local=16x16x16] [grid=PxQxR] [levels=4] [iterations=50] [check=1]`.
//
// The problem is the benchmark's (Dongarra, Heroux, Luszczek, SAND2013-8752): a point and its up to 26 neighbours in a
// box that all ranks share, 26 on the diagonal and -1 beside it, and a right-hand side of which ones are the solution.
// The preconditioner is a V-cycle of `levels` with half the points in each direction on the next one: a symmetric
// Gauss-Seidel sweep before and after, a single one on the coarsest. Before each sweep and each product a rank gets
// what it needs of its neighbours: it posts all receives, then sends to one after the other. Dot products are summed by
// MPI_Allreduce. Rows hold a value and a column for each entry, as the reference code's do.
//
// What is timed are `iterations` between two barriers. Before, the operator's entries are counted, and operator and
// preconditioner are tested for symmetry as the benchmark does; after, it goes on until the residual has fallen to
// 1e-10 of what it was, and compares the solution with ones. Without check=1 none of this is done. levels=0: without a
// preconditioner, where ranks make no difference.
//
// Differs from the benchmark: one set of iterations instead of as many as fill a time, no tuned variant beside the
// reference, and the grid of ranks has its longest side along x. The skeleton is core/motif/workload/hpcg.cpp.
#include <float.h>

#include "box.h"

enum { row_entries = 27, most_levels = 12, most_iterations = 1000 };

typedef struct {
  int points[3];
  int rows, columns;  // the latter with those of neighbours, behind the own in the order of their ranks
  uint8_t* entries;   // of each row
  double* values;
  int* column;
  int* sent[26];  // rows whose values a neighbour gets
  double* buffer;
  int* fine;                          // of each row, the one at its place on the level before
  double *right, *guess, *remainder;  // where a level before asks for a cycle; the last one a product too
} Level;

static Level levels[most_levels];
static int level_count, iterations, is_checked;
static int local[3] = {16, 16, 16};

// Of a solve.
static double *solution, *residual, *direction, *preconditioned, *product;
static double residual_product;  // of residual and what is preconditioned

// The index of a point in a vector, which may lie in a neighbour's box; -1 where there is none.
static int column_at(const Level* level, const int at[3]) {
  int way[3], index = level->rows;
  for (int axis = 0; axis < 3; ++axis) way[axis] = at[axis] < 0 ? -1 : at[axis] >= level->points[axis];
  if (way[0] == 0 && way[1] == 0 && way[2] == 0) return (at[2] * level->points[1] + at[1]) * level->points[0] + at[0];
  for (int i = 0; i < neighbour_count; ++i) {
    if (memcmp(neighbours[i].way, way, sizeof way) != 0) {
      index += points_towards(level->points, neighbours[i].way);
      continue;
    }
    int number = 0;
    for (int axis = 2; axis >= 0; --axis)
      if (way[axis] == 0) number = number * level->points[axis] + at[axis];
    return index + number;
  }
  return -1;
}

static void fill_row(const Level* level, int row) {
  const int x = row % level->points[0], y = row / level->points[0] % level->points[1];
  const int z = row / level->points[0] / level->points[1];
  const size_t first = (size_t)row * row_entries;
  for (int entry = 0; entry < row_entries; ++entry) {
    const int at[3] = {x + entry % 3 - 1, y + entry / 3 % 3 - 1, z + entry / 9 - 1};
    const int column = column_at(level, at);
    if (column < 0) continue;
    const size_t next = first + level->entries[row]++;
    level->column[next] = column;
    level->values[next] = column == row ? 26 : -1;
  }
}

static void make_level(Level* level, int depth) {
  level->rows = level->columns = 1;
  for (int axis = 0; axis < 3; ++axis) {
    level->points[axis] = local[axis] >> depth;
    level->rows *= level->points[axis];
  }
  level->columns = level->rows;
  int largest = 0;
  for (int i = 0; i < neighbour_count; ++i) {
    const int count = points_towards(level->points, neighbours[i].way);
    level->sent[i] = numbers_towards(level->points, neighbours[i].way);
    level->columns += count;
    largest = count > largest ? count : largest;
  }
  level->buffer = memory_for((size_t)(level->columns - level->rows), sizeof(double));
  level->entries = memory_for((size_t)level->rows, 1);
  level->values = memory_for((size_t)level->rows * row_entries, sizeof(double));
  level->column = memory_for((size_t)level->rows * row_entries, sizeof(int));
  for (int row = 0; row < level->rows; ++row) fill_row(level, row);
  level->remainder = memory_for((size_t)level->rows, sizeof(double));
  if (depth == 0) return;
  level->right = memory_for((size_t)level->rows, sizeof(double));
  level->guess = memory_for((size_t)level->columns, sizeof(double));
  level->fine = memory_for((size_t)level->rows, sizeof(int));
  for (int row = 0; row < level->rows; ++row) {
    const int x = 2 * (row % level->points[0]), y = 2 * (row / level->points[0] % level->points[1]);
    const int z = 2 * (row / level->points[0] / level->points[1]);
    level->fine[row] = (z * level[-1].points[1] + y) * level[-1].points[0] + x;
  }
}

static void exchange(const Level* level, double* vector) {
  MPI_Request requests[26];
  double *arriving = vector + level->rows, *next = level->buffer;
  for (int i = 0; i < neighbour_count; ++i) {
    const int count = points_towards(level->points, neighbours[i].way);
    MPI_Irecv(arriving, count, MPI_DOUBLE, neighbours[i].rank, 1, MPI_COMM_WORLD, &requests[i]);
    for (int at = 0; at < count; ++at) next[at] = vector[level->sent[i][at]];
    arriving += count;
    next += count;
  }
  next = level->buffer;
  for (int i = 0; i < neighbour_count; ++i) {
    const int count = points_towards(level->points, neighbours[i].way);
    MPI_Send(next, count, MPI_DOUBLE, neighbours[i].rank, 1, MPI_COMM_WORLD);
    next += count;
  }
  MPI_Waitall(neighbour_count, requests, MPI_STATUSES_IGNORE);
}

static double row_times(const Level* level, int row, const double* vector) {
  const size_t first = (size_t)row * row_entries;
  double sum = 0;
  for (size_t entry = first; entry < first + level->entries[row]; ++entry)
    sum += level->values[entry] * vector[level->column[entry]];
  return sum;
}

static void multiply(const Level* level, double* vector, double* result) {
  exchange(level, vector);
  for (int row = 0; row < level->rows; ++row) result[row] = row_times(level, row, vector);
}

// Solves a row for its own point.
static void relax(const Level* level, int row, const double* right, double* vector) {
  vector[row] += (right[row] - row_times(level, row, vector)) / 26;
}

static void smooth(const Level* level, const double* right, double* vector) {
  exchange(level, vector);
  for (int row = 0; row < level->rows; ++row) relax(level, row, right, vector);
  for (int row = level->rows - 1; row >= 0; --row) relax(level, row, right, vector);
}

static void cycle(const Level* level, const double* right, double* vector) {
  memset(vector, 0, (size_t)level->columns * sizeof *vector);
  smooth(level, right, vector);
  if (level + 1 == levels + level_count) return;
  const Level* coarse = level + 1;
  multiply(level, vector, level->remainder);
  for (int row = 0; row < coarse->rows; ++row) {
    const int fine = coarse->fine[row];
    coarse->right[row] = right[fine] - level->remainder[fine];
  }
  cycle(coarse, coarse->right, coarse->guess);
  for (int row = 0; row < coarse->rows; ++row) vector[coarse->fine[row]] += coarse->guess[row];
  smooth(level, right, vector);
}

static void precondition(const double* right, double* vector) {
  if (level_count > 0) {
    cycle(&levels[0], right, vector);
  } else {
    memcpy(vector, right, (size_t)levels[0].rows * sizeof *vector);
  }
}

static double dot(const double* a, const double* b) {
  double sum = 0;
  for (int row = 0; row < levels[0].rows; ++row) sum += a[row] * b[row];
  return sum_of_all(sum);
}

// The vector becomes `a` times itself and `b` times another.
static void update(double* vector, double a, const double* other, double b) {
  for (int row = 0; row < levels[0].rows; ++row) vector[row] = a * vector[row] + b * other[row];
}

static double* new_vector(void) { return memory_for((size_t)levels[0].columns, sizeof(double)); }

// From zeros, so that the residual is the right-hand side: what a row of ones comes to. The norm of that.
static double begin_solve(void) {
  solution = new_vector();
  residual = new_vector();
  direction = new_vector();
  preconditioned = new_vector();
  product = new_vector();
  for (int row = 0; row < levels[0].rows; ++row) residual[row] = 27 - levels[0].entries[row];
  return sqrt(dot(residual, residual));
}

// The norm of the residual after it.
static double iterate(int iteration) {
  precondition(residual, preconditioned);
  const double before = residual_product;
  residual_product = dot(residual, preconditioned);
  update(direction, iteration > 0 ? ratio(residual_product, before) : 0, preconditioned, 1);
  multiply(&levels[0], direction, product);
  const double step = ratio(residual_product, dot(direction, product));
  update(solution, 1, direction, step);
  update(residual, 1, product, -step);
  return sqrt(dot(residual, residual));
}

// --- Checks

__attribute__((noreturn)) static void is_wrong(const char* what, double found) {
  if (my_rank == 0) fprintf(stderr, "hpcg: %s: %g\n", what, found);
  MPI_Finalize();
  exit(1);
}

// Three in each direction, but for the ends.
static double entries_of(int depth) {
  double entries = 1;
  for (int axis = 0; axis < 3; ++axis) entries *= 3.0 * sides[axis] * (local[axis] >> depth) - 2;
  return entries;
}

static void count_entries(const Level* level, int depth) {
  double own = 0;
  for (int row = 0; row < level->rows; ++row) own += level->entries[row];
  const double all = sum_of_all(own);
  if (all != entries_of(depth))
    is_wrong("entries of the matrix that there should not be, or that are missing", all - entries_of(depth));
}

// From 1 to 2, by the point and not by who has it.
static void fill_at_random(double* vector, uint64_t seed) {
  for (int row = 0; row < levels[0].rows; ++row) {
    uint64_t at[3] = {(uint64_t)(row % local[0]), (uint64_t)(row / local[0] % local[1]),
                      (uint64_t)(row / local[0] / local[1])};
    uint64_t x = seed;
    for (int axis = 2; axis >= 0; --axis) {
      x = (x ^ (at[axis] + (uint64_t)(place[axis] * local[axis]))) * 0xbf58476d1ce4e5b9u;
      x ^= x >> 29;
    }
    vector[row] = 1 + (double)(x >> 11) / 9007199254740992.0;
  }
}

// How far from symmetric, in what rounding may come to: less than 1 is accepted.
static double asymmetry(void (*apply)(const double*, double*)) {
  double *x = new_vector(), *y = new_vector(), *applied = new_vector();
  fill_at_random(x, 1);
  fill_at_random(y, 2);
  apply(y, applied);
  const double one = dot(x, applied);
  apply(x, applied);
  const double other = dot(y, applied);
  const double scale = 2 * 52 * dot(x, x) * dot(y, y) * DBL_EPSILON;
  free(x);
  free(y);
  free(applied);
  return fabs(one - other) / scale;
}

static void apply_matrix(const double* vector, double* result) {
  double* copy = new_vector();
  memcpy(copy, vector, (size_t)levels[0].rows * sizeof *copy);
  multiply(&levels[0], copy, result);
  free(copy);
}

static void check_operators(void) {
  for (int depth = 0; depth == 0 || depth < level_count; ++depth) count_entries(&levels[depth], depth);
  const double of_matrix = asymmetry(apply_matrix), of_cycle = asymmetry(precondition);
  if (!(of_matrix < 1)) is_wrong("the matrix is not symmetric", of_matrix);
  if (!(of_cycle < 1)) is_wrong("the preconditioner is not symmetric", of_cycle);
  if (my_rank == 0) printf("departure from symmetry: matrix %.3g, preconditioner %.3g\n", of_matrix, of_cycle);
}

static void check_solution(double first, double now) {
  int iteration = iterations;
  while (now > 1e-10 * first && iteration < most_iterations) now = iterate(iteration++);
  if (!(now <= 1e-10 * first)) is_wrong("the residual has not fallen to 1e-10", now / first);
  double farthest = 0, error;
  for (int row = 0; row < levels[0].rows; ++row) farthest = fmax(farthest, fabs(solution[row] - 1));
  MPI_Allreduce(&farthest, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (!(error < 1e-6)) is_wrong("the solution is not ones, but off by", error);
  if (my_rank == 0) printf("solved in %d iterations, at most %.1e off, valid\n", iteration, error);
}

// That the benchmark counts, of an iteration of all ranks.
static double operations(void) {
  double sum = 12 * (double)levels[0].rows * rank_count + 2 * entries_of(0);
  for (int depth = 0; depth < level_count; ++depth) sum += (depth + 1 < level_count ? 10 : 4) * entries_of(depth);
  return sum;
}

static void read_arguments(int argc, char** argv) {
  static const char* const known[] = {"local=", "grid=", "levels=", "iterations=", "check=", NULL};
  refuse_unknown(argc, argv, known, "local=, grid=, levels=, iterations= and check=, each with a value");
  level_count = argument_within(argc, argv, "levels", 4, 0, most_levels);
  iterations = argument_within(argc, argv, "iterations", 50, 1, most_iterations);
  is_checked = argument_within(argc, argv, "check", 1, 0, 1);
  read_sizes(argc, argv, "local", local, 4096);
  begin_grid(argc, argv);
  const int multiple = 1 << (level_count > 0 ? level_count - 1 : 0);
  char refused[160];
  snprintf(refused, sizeof refused, "local=%dx%dx%d: accepted are multiples of %d, which levels=%d asks for", local[0],
           local[1], local[2], multiple, level_count);
  if (local[0] % multiple != 0 || local[1] % multiple != 0 || local[2] % multiple != 0) micro_fail(refused);
  snprintf(refused, sizeof refused, "local=%dx%dx%d: accepted are up to 2^26 points of a rank", local[0], local[1],
           local[2]);
  if ((int64_t)local[0] * local[1] * local[2] > 1 << 26) micro_fail(refused);
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  read_arguments(argc, argv);
  for (int depth = 0; depth == 0 || depth < level_count; ++depth) make_level(&levels[depth], depth);
  if (is_checked) check_operators();
  const double first = begin_solve();
  double now = first;
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int iteration = 0; iteration < iterations; ++iteration) now = iterate(iteration);
  const double took = MPI_Wtime() - began;
  MPI_Barrier(MPI_COMM_WORLD);
  const double longest = slowest(took) / iterations;
  if (my_rank == 0) {
    printf("hpcg on %d x %d x %d ranks with %d x %d x %d points, %d levels\n", sides[0], sides[1], sides[2], local[0],
           local[1], local[2], level_count);
    printf("residual after %d iterations: %.9e\n", iterations, now / first);
    printf("an iteration takes %.3f us, %.6f GFLOP/s\n", longest * 1e6,
           longest > 0 ? operations() / longest * 1e-9 : 0);
  }
  if (is_checked) check_solution(first, now);
  MPI_Finalize();
}
