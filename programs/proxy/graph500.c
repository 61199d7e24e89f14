// Breadth-first search as Graph500 asks for it: `graph500 [scale=14] [edgefactor=16] [roots=4] [seed=1]`.
//
// The graph is the specification's (graph500.org, version 2): 2^scale vertices, edgefactor * 2^scale edges drawn by the
// Kronecker generator with A = 0.57, B = C = 0.19, and labels that are permuted. The search is the direction-optimising
// one on a two-dimensional partition (Beamer, Buluc, Asanovic and Patterson, 2013): rank i * C + j of R x C holds the
// edges from vertices of process column j to those of process row i. A level goes top down, where the frontier is
// gathered along the column and what it finds is sent along the row, or bottom up, where bitmaps of the frontier are
// gathered along the column and those of what is visited go around the row. A power of two of ranks is needed.
//
// All results are validated: parents, levels and edges as the specification has it. Differs from it: loops are left
// out, also where traversed edges are counted; a validation gathers all parents on all ranks, so scales are small.
#include "../micro/micro.h"

typedef struct {
  uint64_t* first;  // of each of `count` vertices, where its others begin
  uint32_t* other;
} Edges;

static int scale, rows, columns, my_row, my_column;
static uint64_t local;         // vertices of a rank
static uint64_t total_degree;  // twice the edges
static MPI_Comm row_ranks, column_ranks;
static Edges by_source, by_target;  // of this rank's block: sources of the column, targets of the row
static uint32_t* degree;            // of own vertices

// Of a search.
static uint64_t *known,
    *frontier;  // bitmaps: of the row's vertices, known to be visited; of the column's, in the level
static int64_t* parent;
static int8_t* level_of;
static uint32_t *found, *numbers;  // own vertices of the next level; the column's of this one
static uint64_t found_count;
static uint64_t *pairs, *arrived;  // found for others: target's number at its owner, and source's in the column

static uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static void* memory_of(uint64_t count, size_t size) {
  void* memory = calloc(count > 0 ? count : 1, size);
  if (memory == NULL) {
    fprintf(stderr, "there is not enough memory for the graph\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

// Another number of `scale` bits for each; each step can be undone.
static uint64_t permuted(uint64_t vertex, uint64_t seed) {
  uint64_t mask = ((uint64_t)1 << scale) - 1;
  for (int turn = 0; turn < 4; ++turn) {
    vertex = (vertex * (mixed(seed + (uint64_t)turn) | 1)) & mask;
    vertex ^= vertex >> (scale / 2);
    vertex = (vertex + mixed(seed ^ (uint64_t)(turn + 16))) & mask;
  }
  return vertex;
}

static void edge_of(uint64_t number, uint64_t seed, uint64_t* from, uint64_t* to) {
  uint64_t ends[2] = {0, 0};
  for (int bit = 0; bit < scale; ++bit) {
    uint32_t draw = (uint32_t)(mixed(mixed(seed + number) + (uint64_t)bit) >> 32);
    double drawn = draw / 4294967296.0;
    int quarter = drawn < 0.57 ? 0 : drawn < 0.76 ? 1 : drawn < 0.95 ? 2 : 3;
    ends[0] |= (uint64_t)(quarter & 1) << bit;
    ends[1] |= (uint64_t)(quarter >> 1) << bit;
  }
  *from = permuted(ends[0], seed);
  *to = permuted(ends[1], seed);
}

static int owner_of(uint64_t vertex) { return (int)(vertex % (uint64_t)rank_count); }
static uint64_t place_of(uint64_t vertex) { return vertex / (uint64_t)rank_count; }
static uint32_t in_row(uint64_t vertex) {
  return (uint32_t)((uint64_t)(owner_of(vertex) % columns) * local + place_of(vertex));
}
static uint32_t in_column(uint64_t vertex) {
  return (uint32_t)((uint64_t)(owner_of(vertex) / columns) * local + place_of(vertex));
}
static uint64_t source_of(int column, uint64_t number) {
  uint64_t owner = number / local * (uint64_t)columns + (uint64_t)column;
  return number % local * (uint64_t)rank_count + owner;
}

static int has(const uint64_t* bits, uint64_t at) { return (int)(bits[at / 64] >> (at % 64) & 1); }
static void put(uint64_t* bits, uint64_t at) { bits[at / 64] |= (uint64_t)1 << (at % 64); }

// Pairs of (target in the row, source in the column), sorted by one of them.
static Edges sorted(const uint32_t* ends, uint64_t count, uint64_t vertices, int key) {
  Edges edges = {memory_of(vertices + 1, sizeof(uint64_t)), memory_of(count, sizeof(uint32_t))};
  for (uint64_t i = 0; i < count; ++i) ++edges.first[ends[2 * i + (uint64_t)key] + 1];
  for (uint64_t i = 0; i < vertices; ++i) edges.first[i + 1] += edges.first[i];
  uint64_t* next = memory_of(vertices, sizeof(uint64_t));
  memcpy(next, edges.first, vertices * sizeof(uint64_t));
  for (uint64_t i = 0; i < count; ++i)
    edges.other[next[ends[2 * i + (uint64_t)key]]++] = ends[2 * i + 1 - (uint64_t)key];
  free(next);
  return edges;
}

static int holder_of(uint64_t from, uint64_t to) { return owner_of(to) / columns * columns + owner_of(from) % columns; }

static void construct(uint64_t edge_count, uint64_t seed) {
  uint64_t begin = edge_count * (uint64_t)my_rank / (uint64_t)rank_count;
  uint64_t end = edge_count * (uint64_t)(my_rank + 1) / (uint64_t)rank_count;
  int* counts = memory_of(4 * (uint64_t)rank_count, sizeof(int));
  int *starts = counts + rank_count, *coming = counts + 2 * rank_count, *places = counts + 3 * rank_count;
  uint32_t* ends = memory_of(4 * (end - begin), sizeof(uint32_t));
  for (int fill = 0; fill < 2; ++fill) {
    for (int rank = 0; fill && rank < rank_count; ++rank) {
      starts[rank] = rank > 0 ? starts[rank - 1] + counts[rank - 1] : 0;
      places[rank] = starts[rank];
    }
    for (uint64_t number = begin; number < end; ++number) {
      uint64_t edge[2];
      edge_of(number, seed, &edge[0], &edge[1]);
      for (int way = 0; edge[0] != edge[1] && way < 2; ++way) {
        int holder = holder_of(edge[way], edge[1 - way]);
        if (!fill) {
          counts[holder] += 2;
        } else {
          ends[places[holder]++] = in_row(edge[1 - way]);
          ends[places[holder]++] = in_column(edge[way]);
        }
      }
    }
  }
  MPI_Alltoall(counts, 1, MPI_INT, coming, 1, MPI_INT, MPI_COMM_WORLD);
  uint64_t count = 0;
  for (int rank = 0; rank < rank_count; ++rank) {
    places[rank] = (int)count;
    count += (uint64_t)coming[rank];
  }
  uint32_t* mine = memory_of(count, sizeof(uint32_t));
  MPI_Alltoallv(ends, counts, starts, MPI_UINT32_T, mine, coming, places, MPI_UINT32_T, MPI_COMM_WORLD);
  by_target = sorted(mine, count / 2, local * (uint64_t)columns, 0);
  by_source = sorted(mine, count / 2, local * (uint64_t)rows, 1);
  uint32_t* degrees = memory_of(local * (uint64_t)columns, sizeof(uint32_t));
  for (uint64_t i = 0; i < local * (uint64_t)columns; ++i)
    degrees[i] = (uint32_t)(by_target.first[i + 1] - by_target.first[i]);
  MPI_Reduce_scatter_block(degrees, degree, (int)local, MPI_UINT32_T, MPI_SUM, row_ranks);
  uint64_t own = 0;
  for (uint64_t i = 0; i < local; ++i) own += degree[i];
  MPI_Allreduce(&own, &total_degree, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  free(degrees);
  free(mine);
  free(ends);
  free(counts);
}

// Of a level, around the column: in each step what came in the one before goes on.
static void gather_bits(void) {
  uint64_t words = local / 64;
  int on = (my_row + 1) % rows, back = (my_row + rows - 1) % rows;
  for (int step = 0; step < rows - 1; ++step) {
    int sent = (my_row - step + rows) % rows, coming = (my_row - step - 1 + rows) % rows;
    MPI_Sendrecv(frontier + (uint64_t)sent * words, (int)words, MPI_UINT64_T, on, 1,
                 frontier + (uint64_t)coming * words, (int)words, MPI_UINT64_T, back, 1, column_ranks,
                 MPI_STATUS_IGNORE);
  }
}

// Numbers, of which there are few: in each step two ranks of the column exchange all that they have. How many.
static uint64_t gather_numbers(void) {
  uint64_t count = found_count;
  for (uint64_t i = 0; i < count; ++i) numbers[i] = (uint32_t)((uint64_t)my_row * local + found[i]);
  for (int apart = 1; apart < rows; apart *= 2) {
    MPI_Status status;
    int other = my_row ^ apart, got;
    MPI_Sendrecv(numbers, (int)count, MPI_UINT32_T, other, 1, numbers + count, (int)((uint64_t)rows * local - count),
                 MPI_UINT32_T, other, 1, column_ranks, &status);
    MPI_Get_count(&status, MPI_UINT32_T, &got);
    count += (uint64_t)got;
  }
  return count;
}

static void reach(uint32_t vertex, int column, uint64_t source, int level) {
  if (parent[vertex] >= 0) return;
  parent[vertex] = (int64_t)source_of(column, source);
  level_of[vertex] = (int8_t)level;
  found[found_count++] = vertex;
}

static void go_top_down(int level) {
  uint64_t gathered = gather_numbers();
  found_count = 0;
  uint64_t* counts = memory_of((uint64_t)columns, sizeof(uint64_t));
  for (uint64_t i = 0; i < gathered; ++i) {
    uint64_t source = numbers[i];
    for (uint64_t edge = by_source.first[source]; edge < by_source.first[source + 1]; ++edge) {
      uint32_t target = by_source.other[edge];
      if (has(known, target)) continue;
      put(known, target);
      uint64_t column = target / local;
      if ((int)column == my_column) {
        reach((uint32_t)(target % local), my_column, source, level);
      } else {
        pairs[column * local + counts[column]++] = target % local | source << 32;
      }
    }
  }
  MPI_Request* requests = memory_of(2 * (uint64_t)columns, sizeof(MPI_Request));
  int begun = 0;
  for (int step = 1; step < columns; ++step) {
    int from = (my_column - step + columns) % columns;
    MPI_Irecv(arrived + (uint64_t)from * local, (int)local, MPI_UINT64_T, from, 2, row_ranks, &requests[begun++]);
  }
  for (int step = 1; step < columns; ++step) {
    int to = (my_column + step) % columns;
    MPI_Isend(pairs + (uint64_t)to * local, (int)counts[to], MPI_UINT64_T, to, 2, row_ranks, &requests[begun++]);
  }
  MPI_Status* statuses = memory_of(2 * (uint64_t)columns, sizeof(MPI_Status));
  MPI_Waitall(begun, requests, statuses);
  for (int step = 1; step < columns; ++step) {
    int from = (my_column - step + columns) % columns, got;
    MPI_Get_count(&statuses[step - 1], MPI_UINT64_T, &got);
    for (int i = 0; i < got; ++i) {
      uint64_t pair = arrived[(uint64_t)from * local + (uint64_t)i];
      put(known, (uint64_t)my_column * local + (uint32_t)pair);
      reach((uint32_t)pair, from, pair >> 32, level);
    }
  }
  free(statuses);
  free(requests);
  free(counts);
}

// What of a part of the row's targets has a neighbour in the level; pairs for its owner.
static uint64_t look_up(int part) {
  uint64_t count = 0;
  for (uint64_t target = (uint64_t)part * local; target < (uint64_t)(part + 1) * local; ++target) {
    if (has(known, target)) continue;
    for (uint64_t edge = by_target.first[target]; edge < by_target.first[target + 1]; ++edge) {
      uint64_t source = by_target.other[edge];
      if (!has(frontier, source)) continue;
      put(known, target);
      pairs[count++] = target % local | source << 32;
      break;
    }
  }
  return count;
}

static void go_bottom_up(int level) {
  uint64_t words = local / 64;
  memset(frontier, 0, (uint64_t)rows * words * sizeof(uint64_t));
  for (uint64_t i = 0; i < found_count; ++i) put(frontier, (uint64_t)my_row * local + found[i]);
  found_count = 0;
  gather_bits();
  int on = (my_column + 1) % columns, back = (my_column + columns - 1) % columns;
  for (int step = 0; step < columns; ++step) {
    int part = (my_column - step + columns) % columns, from = (my_column + step) % columns;
    uint64_t count = look_up(part);
    int begun = 0, got = (int)count;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    if (step > 0) {
      MPI_Irecv(arrived, (int)local, MPI_UINT64_T, from, 2, row_ranks, &requests[begun++]);
      MPI_Isend(pairs, (int)count, MPI_UINT64_T, part, 2, row_ranks, &requests[begun++]);
    }
    if (columns > 1) {
      int next = (part - 1 + columns) % columns;
      MPI_Irecv(known + (uint64_t)next * words, (int)words, MPI_UINT64_T, back, 3, row_ranks, &requests[begun++]);
      MPI_Isend(known + (uint64_t)part * words, (int)words, MPI_UINT64_T, on, 3, row_ranks, &requests[begun++]);
    }
    MPI_Waitall(begun, requests, statuses);
    if (step > 0) MPI_Get_count(&statuses[0], MPI_UINT64_T, &got);
    const uint64_t* reached = step > 0 ? arrived : pairs;
    for (int i = 0; i < got; ++i) reach((uint32_t)reached[i], from, reached[i] >> 32, level);
  }
}

static uint64_t search(uint64_t root, int is_shown) {
  memset(known, 0, (uint64_t)columns * local / 8);
  found_count = 0;
  for (uint64_t i = 0; i < local; ++i) parent[i] = level_of[i] = -1;
  if (owner_of(root) == my_rank) {
    put(known, (uint64_t)my_column * local + place_of(root));
    parent[place_of(root)] = (int64_t)root;
    level_of[place_of(root)] = 0;
    found[found_count++] = (uint32_t)place_of(root);
  }
  uint64_t before = 0, visited_degree = 0;
  int is_up = 0;
  for (int level = 1;; ++level) {
    uint64_t own[2] = {found_count, 0}, all[2];
    for (uint64_t i = 0; i < found_count; ++i) own[1] += degree[found[i]];
    MPI_Allreduce(own, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (all[0] == 0) return visited_degree / 2;
    visited_degree += all[1];
    // As in Beamer, Asanovic and Patterson, 2012: alpha = 14, beta = 24.
    if (is_up) {
      is_up = all[0] >= ((uint64_t)1 << scale) / 24;
    } else {
      is_up = all[0] > before && all[1] > (total_degree - visited_degree) / 14;
    }
    before = all[0];
    if (is_shown) printf("  level %d %s from %llu\n", level, is_up ? "up" : "down", (unsigned long long)all[0]);
    if (is_up) {
      go_bottom_up(level);
    } else {
      go_top_down(level);
    }
  }
}

__attribute__((noreturn)) static void is_wrong(const char* what, uint64_t root) {
  fprintf(stderr, "graph500: search from %llu: %s\n", (unsigned long long)root, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

// That the tree has the root as its own parent, that parents are a level up and along edges, and that all edges join
// vertices at most a level apart, or such that were not reached.
static void validate(uint64_t root, const int64_t* parents, const int8_t* levels) {
  int64_t* all_parents = memory_of(local * (uint64_t)rank_count, sizeof(int64_t));
  int8_t* all_levels = memory_of(local * (uint64_t)rank_count, 1);
  MPI_Allgather(parents, (int)local, MPI_INT64_T, all_parents, (int)local, MPI_INT64_T, MPI_COMM_WORLD);
  MPI_Allgather(levels, (int)local, MPI_INT8_T, all_levels, (int)local, MPI_INT8_T, MPI_COMM_WORLD);
  uint8_t* joined = memory_of(local * (uint64_t)columns, 1);
  for (uint64_t target = 0; target < local * (uint64_t)columns; ++target) {
    uint64_t owner = (uint64_t)(my_row * columns) + target / local, at = owner * local + target % local;
    for (uint64_t edge = by_target.first[target]; edge < by_target.first[target + 1]; ++edge) {
      uint64_t source = source_of(my_column, by_target.other[edge]);
      int other = all_levels[(uint64_t)owner_of(source) * local + place_of(source)], own = all_levels[at];
      if ((own < 0) != (other < 0)) is_wrong("an edge leads out of the tree", root);
      if (own - other > 1 || other - own > 1) is_wrong("an edge joins levels that are not neighbours", root);
      if (all_parents[at] == (int64_t)source) joined[target] = 1;
    }
  }
  uint8_t* own = memory_of(local, 1);
  MPI_Reduce_scatter_block(joined, own, (int)local, MPI_UINT8_T, MPI_MAX, row_ranks);
  for (uint64_t i = 0; i < local; ++i) {
    uint64_t vertex = i * (uint64_t)rank_count + (uint64_t)my_rank;
    if ((levels[i] < 0) != (parents[i] < 0)) is_wrong("a vertex has a level or a parent only", root);
    if (vertex == root && (levels[i] != 0 || parents[i] != (int64_t)root)) is_wrong("the root is not its own", root);
    if (parents[i] < 0 || vertex == root) continue;
    uint64_t from = (uint64_t)parents[i];
    if (all_levels[(uint64_t)owner_of(from) * local + place_of(from)] != levels[i] - 1)
      is_wrong("a parent is not one level up", root);
    if (!own[i]) is_wrong("there is no edge to a parent", root);
  }
  free(own);
  free(joined);
  free(all_levels);
  free(all_parents);
}

static uint64_t root_of(int number, uint64_t seed) {
  for (uint64_t draw = 0;; ++draw) {
    uint64_t root = mixed(mixed(seed + 1000003) + (uint64_t)number * 4096 + draw) & (((uint64_t)1 << scale) - 1);
    uint32_t edges = degree[place_of(root)];
    MPI_Bcast(&edges, 1, MPI_UINT32_T, owner_of(root), MPI_COMM_WORLD);
    if (edges > 0) return root;
  }
}

static void refuse_unknown(int argc, char** argv) {
  static const char* const known[] = {"scale=", "edgefactor=", "roots=", "seed="};
  for (int i = 1; i < argc; ++i) {
    int found = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; ++k) found |= strncmp(argv[i], known[k], strlen(known[k])) == 0;
    if (found) continue;
    if (my_rank == 0) fprintf(stderr, "%s: accepted are scale=, edgefactor=, roots= and seed=, each with a number\n", argv[i]);
    MPI_Finalize();
    exit(2);
  }
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  refuse_unknown(argc, argv);
  scale = argument(argc, argv, "scale", 14, 4);
  int edge_factor = argument(argc, argv, "edgefactor", 16, 1), roots = argument(argc, argv, "roots", 4, 1);
  uint64_t seed = mixed((uint64_t)argument(argc, argv, "seed", 1, 0));
  char refused[80];
  snprintf(refused, sizeof refused, "%d ranks: accepted is a power of two", rank_count);
  if (rank_count & (rank_count - 1)) micro_fail(refused);
  int least = 6;  // words of 64 vertices
  while (1 << (least - 6) < rank_count) ++least;
  snprintf(refused, sizeof refused, "scale=%d on %d ranks: accepted is %d to 26", scale, rank_count, least);
  if (scale < least || scale > 26) micro_fail(refused);
  for (rows = 1; 2 * rows * 2 * rows <= rank_count;) rows *= 2;
  columns = rank_count / rows;
  my_row = my_rank / columns;
  my_column = my_rank % columns;
  MPI_Comm_split(MPI_COMM_WORLD, my_row, my_column, &row_ranks);
  MPI_Comm_split(MPI_COMM_WORLD, my_column, my_row, &column_ranks);
  local = ((uint64_t)1 << scale) / (uint64_t)rank_count;
  degree = memory_of(local, sizeof(uint32_t));
  construct((uint64_t)edge_factor << scale, seed);
  known = memory_of((uint64_t)columns * local / 64, sizeof(uint64_t));
  frontier = memory_of((uint64_t)rows * local / 64, sizeof(uint64_t));
  found = memory_of(local, sizeof(uint32_t));
  numbers = memory_of((uint64_t)rows * local, sizeof(uint32_t));
  pairs = memory_of((uint64_t)columns * local, sizeof(uint64_t));
  arrived = memory_of((uint64_t)columns * local, sizeof(uint64_t));
  int64_t* parents = memory_of((uint64_t)roots * local, sizeof(int64_t));
  int8_t* levels = memory_of((uint64_t)roots * local, 1);
  uint64_t *root = memory_of((uint64_t)roots, sizeof(uint64_t)), *edges = memory_of((uint64_t)roots, sizeof(uint64_t));
  double* seconds = memory_of((uint64_t)roots, sizeof(double));
  for (int i = 0; i < roots; ++i) root[i] = root_of(i, seed);
  for (int i = 0; i < roots; ++i) {
    parent = parents + (uint64_t)i * local;
    level_of = levels + (uint64_t)i * local;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    edges[i] = search(root[i], my_rank == 0);
    seconds[i] = MPI_Wtime() - began;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  double inverse = 0;
  for (int i = 0; i < roots; ++i) {
    validate(root[i], parents + (uint64_t)i * local, levels + (uint64_t)i * local);
    double took = slowest(seconds[i]);
    inverse += took / (double)edges[i] / roots;
    if (my_rank == 0)
      printf("root %llu: %llu edges in %.3f us, valid\n", (unsigned long long)root[i], (unsigned long long)edges[i],
             took * 1e6);
  }
  if (my_rank == 0) printf("graph500 of scale %d on %d ranks: %.6f GTEPS\n", scale, rank_count, 1e-9 / inverse);
  MPI_Finalize();
}
