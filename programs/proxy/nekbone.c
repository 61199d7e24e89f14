// Conjugate gradients on spectral elements as Nekbone has them: `nekbone [local=4x4x4] [grid=PxQxR] [nx1=10]
// [iterations=100] [check=1]`.
//
// Each rank has a box of `local` cubic elements of side 1, each with nx1^3 points of Gauss, Lobatto and Legendre. The
// operator is that of the public program (github Nek5000/Nekbone, cg.f): element by element the gradient by the
// derivative matrix, six geometric factors of each point and the gradient transposed; then sums over points that
// elements share, of ranks by a message to each of up to 26 neighbours, all receives first, then all sends; a tenth of
// the vector is added, and the boundary is masked. There is no preconditioner. Three inner products an iteration,
// weighted by how many elements have a point, are summed by MPI_Allreduce.
//
// What is timed are `iterations` between two barriers. Before, weights are summed: they must come to the number of
// different points. The right-hand side is that of -laplace(u) with u a product of parabolas that are zero on the
// boundary, which elements of any order have exactly at their points: after, it goes on until the residual has fallen
// to 1e-10, and compares the solution with u. Without check=1 neither is done.
//
// Differs from the program: its right-hand side is one whose solution nobody knows; its elements may be of any shape,
// and who shares points with whom is found out by their numbers. The skeleton is core/motif/workload/nekbone.cpp.
#include "box.h"

enum { most_points = 64, most_iterations = 10000 };

static int local[3] = {4, 4, 4};
static int nx1, iterations, is_checked;
static int elements;
static size_t element_points, points;  // of a rank, those that elements share counted in each
static double node[most_points], weight[most_points];
static double derivative[most_points][most_points];
static double *factors, *mask, *share;  // of points: six each; 0 on the boundary; 1 / elements that have it

// The rank's points, each once.
static int lattice_points[3];
static double* lattice;
static int* lattice_number;  // of each point of an element
static int* shared[26];      // with each neighbour
static double *leaving, *arriving;

static double *solution, *residual, *direction, *preconditioned, *product, *exact;
static double residual_product;

// --- Points and elements

// Legendre's polynomial of a degree, and its derivative.
static double legendre(int degree, double x, double* slope) {
  double before = 1, value = degree == 0 ? 1 : x, slope_before = 0;
  *slope = degree == 0 ? 0 : 1;
  for (int k = 2; k <= degree; ++k) {
    const double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
    const double next_slope = slope_before + (2 * k - 1) * value;
    before = value, value = next;
    slope_before = *slope, *slope = next_slope;
  }
  return value;
}

static void find_nodes(void) {
  const int degree = nx1 - 1;
  double slope, values[most_points];
  for (int i = 0; i < nx1; ++i) {
    double x = -cos(acos(-1.0) * i / degree);
    // Newton's steps towards a zero of the slope; (1 - x^2) times its own slope is by Legendre's equation.
    for (int step = 0; i > 0 && i < degree && step < 50; ++step) {
      const double value = legendre(degree, x, &slope);
      x -= slope * (1 - x * x) / (2 * x * slope - degree * (degree + 1) * value);
    }
    node[i] = x;
    values[i] = legendre(degree, x, &slope);
    weight[i] = 2 / (degree * (degree + 1) * values[i] * values[i]);
  }
  for (int i = 0; i < nx1; ++i)
    for (int j = 0; j < nx1; ++j) derivative[i][j] = i == j ? 0 : values[i] / (values[j] * (node[i] - node[j]));
  derivative[0][0] = -degree * (degree + 1) / 4.0;
  derivative[degree][degree] = degree * (degree + 1) / 4.0;
}

// Where a point of an element lies: element and index along each axis, the element's counted over all ranks.
static void locate(size_t point, int element[3], int index[3]) {
  const int number = (int)(point / element_points), inside = (int)(point % element_points);
  element[0] = place[0] * local[0] + number % local[0];
  element[1] = place[1] * local[1] + number / local[0] % local[1];
  element[2] = place[2] * local[2] + number / local[0] / local[1];
  index[0] = inside % nx1, index[1] = inside / nx1 % nx1, index[2] = inside / nx1 / nx1;
}

static double* new_vector(void) { return memory_for(points, sizeof(double)); }

static void make_points(void) {
  element_points = (size_t)nx1 * (size_t)nx1 * (size_t)nx1;
  elements = local[0] * local[1] * local[2];
  points = (size_t)elements * element_points;
  mask = new_vector();
  factors = memory_for(points * 6, sizeof *factors);
  lattice_number = memory_for(points, sizeof *lattice_number);
  for (int axis = 0; axis < 3; ++axis) lattice_points[axis] = local[axis] * (nx1 - 1) + 1;
  for (size_t point = 0; point < points; ++point) {
    int element[3], index[3], at[3], is_inside = 1;
    locate(point, element, index);
    for (int axis = 0; axis < 3; ++axis) {
      const int overall = element[axis] * (nx1 - 1) + index[axis];
      is_inside &= overall > 0 && overall < sides[axis] * local[axis] * (nx1 - 1);
      at[axis] = overall - place[axis] * local[axis] * (nx1 - 1);
    }
    mask[point] = is_inside;
    lattice_number[point] = (at[2] * lattice_points[1] + at[1]) * lattice_points[0] + at[0];
    // An element has half the size of the one from -1 to 1: a slope counts twice and the volume an eighth.
    const double factor = weight[index[0]] * weight[index[1]] * weight[index[2]] / 2;
    factors[6 * point] = factors[6 * point + 3] = factors[6 * point + 5] = factor;
  }
  lattice =
      memory_for((size_t)lattice_points[0] * (size_t)lattice_points[1] * (size_t)lattice_points[2], sizeof *lattice);
  size_t all = 0;
  for (int i = 0; i < neighbour_count; ++i) {
    shared[i] = numbers_towards(lattice_points, neighbours[i].way);
    all += (size_t)points_towards(lattice_points, neighbours[i].way);
  }
  leaving = memory_for(all, sizeof *leaving);
  arriving = memory_for(all, sizeof *arriving);
}

// --- The operator

// All elements that have a point get the sum of what they have there.
static void sum_shared(double* vector) {
  MPI_Request requests[52];
  double* next = arriving;
  memset(lattice, 0,
         (size_t)lattice_points[0] * (size_t)lattice_points[1] * (size_t)lattice_points[2] * sizeof *lattice);
  for (int i = 0; i < neighbour_count; ++i) {
    const int count = points_towards(lattice_points, neighbours[i].way);
    MPI_Irecv(next, count, MPI_DOUBLE, neighbours[i].rank, 1, MPI_COMM_WORLD, &requests[i]);
    next += count;
  }
  for (size_t point = 0; point < points; ++point) lattice[lattice_number[point]] += vector[point];
  next = leaving;
  for (int i = 0; i < neighbour_count; ++i) {
    const int count = points_towards(lattice_points, neighbours[i].way);
    for (int at = 0; at < count; ++at) next[at] = lattice[shared[i][at]];
    MPI_Isend(next, count, MPI_DOUBLE, neighbours[i].rank, 1, MPI_COMM_WORLD, &requests[neighbour_count + i]);
    next += count;
  }
  MPI_Waitall(2 * neighbour_count, requests, MPI_STATUSES_IGNORE);
  next = arriving;
  for (int i = 0; i < neighbour_count; ++i) {
    const int count = points_towards(lattice_points, neighbours[i].way);
    for (int at = 0; at < count; ++at) lattice[shared[i][at]] += next[at];
    next += count;
  }
  for (size_t point = 0; point < points; ++point) vector[point] = lattice[lattice_number[point]];
}

// The derivative matrix, or its transpose, along an axis of an element; added to the result.
static void derive(const double* from, double* to, int axis, int is_transposed) {
  const size_t stride = axis == 0 ? 1 : axis == 1 ? (size_t)nx1 : (size_t)nx1 * (size_t)nx1;
  for (size_t point = 0; point < element_points; ++point) {
    const size_t i = point / stride % (size_t)nx1;
    const double* line = from + point - i * stride;
    double sum = 0;
    for (size_t j = 0; j < (size_t)nx1; ++j)
      sum += (is_transposed ? derivative[j][i] : derivative[i][j]) * line[j * stride];
    to[point] += sum;
  }
}

static void multiply_element(const double* from, const double* factor, double* to) {
  static double slope[3][most_points * most_points * most_points];
  memset(to, 0, element_points * sizeof *to);
  for (int axis = 0; axis < 3; ++axis) {
    memset(slope[axis], 0, element_points * sizeof *slope[axis]);
    derive(from, slope[axis], axis, 0);
  }
  for (size_t point = 0; point < element_points; ++point, factor += 6) {
    const double x = slope[0][point], y = slope[1][point], z = slope[2][point];
    slope[0][point] = factor[0] * x + factor[1] * y + factor[2] * z;
    slope[1][point] = factor[1] * x + factor[3] * y + factor[4] * z;
    slope[2][point] = factor[2] * x + factor[4] * y + factor[5] * z;
  }
  for (int axis = 0; axis < 3; ++axis) derive(slope[axis], to, axis, 1);
}

static void multiply(const double* vector, double* result) {
  for (size_t first = 0; first < points; first += element_points)
    multiply_element(vector + first, factors + 6 * first, result + first);
  sum_shared(result);
  for (size_t point = 0; point < points; ++point) result[point] += 0.1 * vector[point];
  for (size_t point = 0; point < points; ++point) result[point] *= mask[point];
}

// --- The solve

static double inner(const double* a, const double* b) {
  double sum = 0;
  for (size_t point = 0; point < points; ++point) sum += a[point] * share[point] * b[point];
  return sum_of_all(sum);
}

// Parabolas of which each is 1 in the middle, and their second derivatives with the sign turned.
static void begin_right_hand_side(void) {
  exact = new_vector();
  for (size_t point = 0; point < points; ++point) {
    int element[3], index[3];
    double value[3], bend[3], mass = 1;
    locate(point, element, index);
    for (int axis = 0; axis < 3; ++axis) {
      const double half = sides[axis] * local[axis] / 2.0;
      const double at = (element[axis] + (node[index[axis]] + 1) / 2 - half) / half;
      value[axis] = 1 - at * at;
      bend[axis] = 2 / (half * half);
      mass *= weight[index[axis]] / 2;
    }
    exact[point] = mask[point] * value[0] * value[1] * value[2];
    residual[point] =
        mass * (bend[0] * value[1] * value[2] + bend[1] * value[0] * value[2] + bend[2] * value[0] * value[1]);
  }
  sum_shared(residual);
  for (size_t point = 0; point < points; ++point)
    residual[point] = mask[point] * (residual[point] + 0.1 * exact[point]);
}

// The norm of the right-hand side, which is the residual of zeros.
static double begin_solve(void) {
  share = new_vector();
  for (size_t point = 0; point < points; ++point) share[point] = 1;
  sum_shared(share);
  for (size_t point = 0; point < points; ++point) share[point] = 1 / share[point];
  solution = new_vector();
  residual = new_vector();
  direction = new_vector();
  preconditioned = new_vector();
  product = new_vector();
  begin_right_hand_side();
  return sqrt(inner(residual, residual));
}

static void add(double* vector, const double* other, double times) {
  for (size_t point = 0; point < points; ++point) vector[point] += times * other[point];
}

// The norm of the residual after it.
static double iterate(int iteration) {
  memcpy(preconditioned, residual, points * sizeof *residual);
  const double before = residual_product;
  residual_product = inner(residual, preconditioned);
  const double again = iteration > 0 ? ratio(residual_product, before) : 0;
  for (size_t point = 0; point < points; ++point) direction[point] = preconditioned[point] + again * direction[point];
  multiply(direction, product);
  const double step = ratio(residual_product, inner(product, direction));
  add(solution, direction, step);
  add(residual, product, -step);
  return sqrt(inner(residual, residual));
}

// --- Checks

__attribute__((noreturn)) static void is_wrong(const char* what, double found) {
  if (my_rank == 0) fprintf(stderr, "nekbone: %s: %g\n", what, found);
  MPI_Finalize();
  exit(1);
}

static void check_shares(void) {
  double own = 0, different = 1;
  for (size_t point = 0; point < points; ++point) own += share[point];
  const double all = sum_of_all(own);
  for (int axis = 0; axis < 3; ++axis) different *= (double)sides[axis] * local[axis] * (nx1 - 1) + 1;
  if (!(fabs(all / different - 1) < 1e-9)) is_wrong("shared points are not summed right, by", all - different);
  if (my_rank == 0) printf("%.0f points of %.0f in elements are different\n", different, (double)points * rank_count);
}

static void check_solution(double first, double now) {
  int iteration = iterations;
  while (now > 1e-10 * first && iteration < most_iterations) now = iterate(iteration++);
  if (!(now <= 1e-10 * first)) is_wrong("the residual has not fallen to 1e-10", now / first);
  double farthest = 0, error;
  for (size_t point = 0; point < points; ++point) farthest = fmax(farthest, fabs(solution[point] - exact[point]));
  MPI_Allreduce(&farthest, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (!(error < 1e-6)) is_wrong("the solution is not the one of the right-hand side, but off by", error);
  if (my_rank == 0) printf("solved in %d iterations, at most %.1e off, valid\n", iteration, error);
}

static void read_arguments(int argc, char** argv) {
  static const char* const known[] = {"local=", "grid=", "nx1=", "iterations=", "check=", NULL};
  refuse_unknown(argc, argv, known, "local=, grid=, nx1=, iterations= and check=, each with a value");
  nx1 = argument_within(argc, argv, "nx1", 10, 2, most_points);
  iterations = argument_within(argc, argv, "iterations", 100, 1, most_iterations);
  is_checked = argument_within(argc, argv, "check", 1, 0, 1);
  read_sizes(argc, argv, "local", local, 4096);
  begin_grid(argc, argv);
  const double count = (double)local[0] * local[1] * local[2] * nx1 * nx1 * nx1;
  char refused[160];
  snprintf(refused, sizeof refused, "local=%dx%dx%d with nx1=%d: accepted are up to 2^26 points of a rank", local[0],
           local[1], local[2], nx1);
  if (count > 1 << 26) micro_fail(refused);
  int has_inside = 1;
  for (int axis = 0; axis < 3; ++axis) has_inside &= (int64_t)sides[axis] * local[axis] * (nx1 - 1) > 1;
  snprintf(refused, sizeof refused,
           "local=%dx%dx%d with nx1=%d on %dx%dx%d ranks: accepted are boxes with points inside", local[0], local[1],
           local[2], nx1, sides[0], sides[1], sides[2]);
  if (!has_inside) micro_fail(refused);
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  read_arguments(argc, argv);
  find_nodes();
  make_points();
  const double first = begin_solve();
  if (is_checked) check_shares();
  double now = first;
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int iteration = 0; iteration < iterations; ++iteration) now = iterate(iteration);
  const double took = MPI_Wtime() - began;
  MPI_Barrier(MPI_COMM_WORLD);
  const double longest = slowest(took) / iterations;
  if (my_rank == 0) {
    // The program counts 12 nx1 + 34 operations a point.
    const double operations = (double)points * rank_count * (12 * nx1 + 34);
    printf("nekbone on %d x %d x %d ranks with %d x %d x %d elements of %d^3 points\n", sides[0], sides[1], sides[2],
           local[0], local[1], local[2], nx1);
    printf("residual after %d iterations: %.9e\n", iterations, now / first);
    printf("an iteration takes %.3f us, %.6f GFLOP/s\n", longest * 1e6, longest > 0 ? operations / longest * 1e-9 : 0);
  }
  if (is_checked) check_solution(first, now);
  MPI_Finalize();
}
