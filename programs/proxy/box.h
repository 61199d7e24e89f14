// What programs share in which each rank has a box of points: an open grid of ranks, x running fastest, the neighbours
// across faces, edges and corners, and arguments of the form name=value.
#pragma once

#include <math.h>
#include <stdint.h>

#include "../micro/micro.h"

static int sides[3];  // ranks along each axis
static int place[3];  // of this rank in the grid

// Up to 26, in the order of their ranks.
static struct neighbour {
  int rank;
  int way[3];  // along each axis: -1, 0 or 1
} neighbours[26];
static int neighbour_count;

static void* memory_for(size_t count, size_t each_bytes) {
  void* memory = calloc(count > 0 ? count : 1, each_bytes);
  if (memory == NULL) {
    fprintf(stderr, "rank %d: there is not enough memory for %zu bytes\n", my_rank, count * each_bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

// The value of `name=AxBxC`, or what `sizes` has when it is not given. True when it is.
static int read_sizes(int argc, char** argv, const char* name, int sizes[3], int most) {
  const size_t length = strlen(name);
  int is_given = 0;
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], name, length) != 0 || argv[i][length] != '=') continue;
    const char* text = argv[i] + length + 1;
    int is_right = 1;
    for (int axis = 0; is_right && axis < 3; ++axis) {
      char* end;
      const long value = strtol(text, &end, 10);
      is_right = *text >= '0' && *text <= '9' && value >= 1 && value <= most && *end == (axis < 2 ? 'x' : '\0');
      sizes[axis] = is_right ? (int)value : 0;
      text = end + 1;
    }
    char refused[160];
    snprintf(refused, sizeof refused, "%.80s: accepted is PxQxR, each from 1 to %d", argv[i], most);
    if (!is_right) micro_fail(refused);
    is_given = 1;
  }
  return is_given;
}

// The value of the argument `name=VALUE`, or `otherwise` when it is not given.
static int argument_within(int argc, char** argv, const char* name, int otherwise, int least, int most) {
  const int value = argument(argc, argv, name, otherwise, least);
  char refused[160];
  const char* between = most == least + 1 ? "or" : "to";
  snprintf(refused, sizeof refused, "%s=%d: accepted is %d %s %d", name, value, least, between, most);
  if (value > most) micro_fail(refused);
  return value;
}

// `known`: names with their `=`, the last one NULL.
static void refuse_unknown(int argc, char** argv, const char* const* known, const char* accepted) {
  for (int i = 1; i < argc; ++i) {
    int is_known = 0;
    for (int k = 0; known[k] != NULL; ++k) is_known |= strncmp(argv[i], known[k], strlen(known[k])) == 0;
    char refused[256];
    snprintf(refused, sizeof refused, "%.80s: accepted are %s", argv[i], accepted);
    if (!is_known) micro_fail(refused);
  }
}

// As near to a cube as the ranks allow; larger sides first.
static void choose_sides(void) {
  int64_t least = 0;
  for (int z = 1; (int64_t)z * z * z <= rank_count; ++z) {
    for (int y = z; rank_count % z == 0 && (int64_t)y * y <= rank_count / z; ++y) {
      if (rank_count / z % y != 0) continue;
      const int x = rank_count / z / y;
      const int64_t surface = (int64_t)x * y + (int64_t)y * z + (int64_t)z * x;
      if (least != 0 && surface >= least) continue;
      least = surface;
      sides[0] = x, sides[1] = y, sides[2] = z;
    }
  }
}

// Reads grid=, and finds place and neighbours.
static void begin_grid(int argc, char** argv) {
  if (!read_sizes(argc, argv, "grid", sides, 1 << 20)) choose_sides();
  char refused[160];
  snprintf(refused, sizeof refused, "grid=%dx%dx%d: accepted are sides whose product is %d, the number of ranks",
           sides[0], sides[1], sides[2], rank_count);
  if ((int64_t)sides[0] * sides[1] > rank_count || (int64_t)sides[0] * sides[1] * sides[2] != rank_count)
    micro_fail(refused);
  place[0] = my_rank % sides[0];
  place[1] = my_rank / sides[0] % sides[1];
  place[2] = my_rank / sides[0] / sides[1];
  for (int way = 0; way < 27; ++way) {
    struct neighbour next = {0, {way % 3 - 1, way / 3 % 3 - 1, way / 9 - 1}};
    int is_there = way != 13;
    for (int axis = 2; axis >= 0; --axis) {
      const int there = place[axis] + next.way[axis];
      is_there &= there >= 0 && there < sides[axis];
      next.rank = next.rank * sides[axis] + there;
    }
    if (is_there) neighbours[neighbour_count++] = next;
  }
}

// Of a box of `points`, how many lie at its end in a direction: a face, an edge or a corner, one layer deep.
static int points_towards(const int points[3], const int way[3]) {
  int count = 1;
  for (int axis = 0; axis < 3; ++axis) count *= way[axis] == 0 ? points[axis] : 1;
  return count;
}

// Their numbers in the box, x running fastest.
static int* numbers_towards(const int points[3], const int way[3]) {
  int first[3], last[3], count = 0;
  for (int axis = 0; axis < 3; ++axis) {
    first[axis] = way[axis] > 0 ? points[axis] - 1 : 0;
    last[axis] = way[axis] < 0 ? 1 : points[axis];
  }
  int* numbers = memory_for((size_t)points_towards(points, way), sizeof *numbers);
  for (int z = first[2]; z < last[2]; ++z)
    for (int y = first[1]; y < last[1]; ++y)
      for (int x = first[0]; x < last[0]; ++x) numbers[count++] = (z * points[1] + y) * points[0] + x;
  return numbers;
}

static double sum_of_all(double own) {
  double sum;
  MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

// None where the solution has been reached exactly, and both are zero.
static double ratio(double a, double b) { return b != 0 ? a / b : 0; }
