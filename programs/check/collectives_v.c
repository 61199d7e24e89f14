// Collectives with counts, displacements and datatypes of each rank's own (v and w variants), and the neighbourhood
// collectives on a ring, a torus and an irregular graph; blocking, nonblocking and persistent.
#include "collective.h"

// Rank r's part has r % 5 * scale elements (some ranks have none), and parts lie in reverse order with gaps of one.
typedef struct {
  int *counts, *places, total;
} Layout;

static int part_count(int rank, int scale) { return rank % 5 * scale; }

static Layout make_layout(int size, int scale) {
  Layout layout = {allocate((size_t)size * sizeof(int)), allocate((size_t)size * sizeof(int)), 0};
  for (int r = size - 1; r >= 0; --r) {
    layout.counts[r] = part_count(r, scale);
    layout.places[r] = layout.total;
    layout.total += layout.counts[r] + 1;
  }
  return layout;
}

static void free_layout(Layout* layout) {
  free(layout->counts);
  free(layout->places);
}

static int64_t* filled(int count, int seed) {
  int64_t* values = allocate((size_t)count * sizeof *values);
  for (int i = 0; i < count; ++i) values[i] = value_of(seed, i);
  return values;
}

static int64_t* cleared(int count) { return memset(allocate((size_t)count * 8), 0xff, (size_t)count * 8); }

static void require_part(const int64_t* part, int count, int seed, const char* what) {
  for (int i = 0; i < count; ++i) REQUIRE(part[i] == value_of(seed, i), "%s: element %d is wrong", what, i);
}

static void require_parts(const int64_t* all, const Layout* layout, const char* what) {
  for (int r = 0; r < rank_count; ++r) {
    require_part(all + layout->places[r], layout->counts[r], r, what);
    REQUIRE(all[layout->places[r] + layout->counts[r]] == -1, "%s wrote behind the part of rank %d", what, r);
  }
}

static void gatherv_scatterv_allgatherv(Form form, int scale) {
  int root = rank_count - 1, mine = part_count(my_rank, scale);
  Layout layout = make_layout(rank_count, scale);
  int64_t *send = filled(mine, my_rank), *all = cleared(layout.total), *back = cleared(mine + 1);
  COLLECTIVE(form, Gatherv, gatherv, send, mine, MPI_INT64_T, all, layout.counts, layout.places, MPI_INT64_T, root,
             MPI_COMM_WORLD);
  if (my_rank == root) require_parts(all, &layout, "gatherv");
  COLLECTIVE(form, Scatterv, scatterv, all, layout.counts, layout.places, MPI_INT64_T, back, mine, MPI_INT64_T, root,
             MPI_COMM_WORLD);
  require_part(back, mine, my_rank, "scatterv");
  memset(all, 0xff, (size_t)layout.total * 8);
  COLLECTIVE(form, Allgatherv, allgatherv, send, mine, MPI_INT64_T, all, layout.counts, layout.places, MPI_INT64_T,
             MPI_COMM_WORLD);
  require_parts(all, &layout, "allgatherv");
  free(send);
  free(all);
  free(back);
  free_layout(&layout);
}

// Rank s sends (s + t) % 4 * scale elements to rank t. Type 0 of alltoallw is int64, type 1 is the same as bytes.
static void alltoallv_and_w(Form form, int scale, int use_types) {
  size_t n = (size_t)rank_count;
  int *send_counts = allocate(n * sizeof(int)), *receive_counts = allocate(n * sizeof(int));
  int *send_places = allocate(n * sizeof(int)), *receive_places = allocate(n * sizeof(int)), total = 0;
  MPI_Datatype *types = allocate(n * sizeof(MPI_Datatype)), eight_bytes;
  MPI_Type_contiguous(8, MPI_BYTE, &eight_bytes);
  MPI_Type_commit(&eight_bytes);
  for (int r = 0; r < rank_count; ++r) {
    send_counts[r] = receive_counts[r] = (my_rank + r) % 4 * scale;
    send_places[r] = receive_places[r] = total;
    total += send_counts[r];
    types[r] = r % 2 ? eight_bytes : MPI_INT64_T;
    if (use_types) send_places[r] = receive_places[r] *= 8;  // alltoallw counts displacements in bytes
  }
  int64_t *send = allocate((size_t)total * 8), *receive = cleared(total);
  for (int r = 0, at = 0; r < rank_count; at += send_counts[r++])
    for (int i = 0; i < send_counts[r]; ++i) send[at + i] = value_of(100 * my_rank + r, i);
  if (use_types)
    COLLECTIVE(form, Alltoallw, alltoallw, send, send_counts, send_places, types, receive, receive_counts,
               receive_places, types, MPI_COMM_WORLD);
  else
    COLLECTIVE(form, Alltoallv, alltoallv, send, send_counts, send_places, MPI_INT64_T, receive, receive_counts,
               receive_places, MPI_INT64_T, MPI_COMM_WORLD);
  for (int r = 0, at = 0; r < rank_count; at += receive_counts[r++])
    require_part(receive + at, receive_counts[r], 100 * r + my_rank, use_types ? "alltoallw" : "alltoallv");
  memcpy(receive, send, (size_t)total * 8);
  if (!use_types) {
    COLLECTIVE_IN_PLACE(form, Alltoallv, alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, receive,
                        receive_counts, receive_places, MPI_INT64_T, MPI_COMM_WORLD);
    for (int r = 0, at = 0; r < rank_count; at += receive_counts[r++])
      require_part(receive + at, receive_counts[r], 100 * r + my_rank, "alltoallv in place");
  }
  MPI_Type_free(&eight_bytes);
  free(send_counts);
  free(receive_counts);
  free(send_places);
  free(receive_places);
  free(types);
  free(send);
  free(receive);
}

enum { neighbour_max = 8, neighbour_elements = 500 };

typedef struct {
  MPI_Comm comm;
  int in_count, out_count, sources[neighbour_max], targets[neighbour_max];
} Neighbours;

// The blocks of parallel edges (a ring of two has them) carry equal data here, so that their order does not matter.
static void neighbourhood(Form form, const Neighbours* n) {
  enum { count = neighbour_elements };
  int counts[neighbour_max], places[neighbour_max];
  MPI_Aint offsets[neighbour_max];
  MPI_Datatype types[neighbour_max];
  int64_t *send = cleared(neighbour_max * count), *receive = cleared(neighbour_max * count);
  int64_t* own = filled(count, my_rank);
  for (int k = 0; k < neighbour_max; ++k) {
    counts[k] = count - 3;
    places[k] = (neighbour_max - 1 - k) * count;
    offsets[k] = places[k] * 8;
    types[k] = MPI_INT64_T;
  }
  COLLECTIVE(form, Neighbor_allgather, neighbor_allgather, own, count, MPI_INT64_T, receive, count, MPI_INT64_T,
             n->comm);
  for (int k = 0; k < n->in_count; ++k)
    if (n->sources[k] >= 0) require_part(receive + k * count, count, n->sources[k], "neighbor_allgather");
  COLLECTIVE(form, Neighbor_allgatherv, neighbor_allgatherv, own, count - 3, MPI_INT64_T, receive, counts, places,
             MPI_INT64_T, n->comm);
  for (int k = 0; k < n->in_count; ++k)
    if (n->sources[k] >= 0) require_part(receive + places[k], count - 3, n->sources[k], "neighbor_allgatherv");

  for (int k = 0; k < n->out_count; ++k)
    for (int i = 0; i < count; ++i) send[k * count + i] = value_of(100 * my_rank + n->targets[k], i);
  COLLECTIVE(form, Neighbor_alltoall, neighbor_alltoall, send, count, MPI_INT64_T, receive, count, MPI_INT64_T,
             n->comm);
  for (int k = 0; k < n->in_count; ++k)
    if (n->sources[k] >= 0)
      require_part(receive + k * count, count, 100 * n->sources[k] + my_rank, "neighbor_alltoall");
  for (int k = 0; k < n->out_count; ++k)
    for (int i = 0; i < count; ++i) send[places[k] + i] = value_of(100 * my_rank + n->targets[k], i);
  for (int use_types = 0; use_types < 2; ++use_types) {
    memset(receive, 0xff, (size_t)(neighbour_max * count) * 8);
    if (use_types)
      COLLECTIVE(form, Neighbor_alltoallw, neighbor_alltoallw, send, counts, offsets, types, receive, counts, offsets,
                 types, n->comm);
    else
      COLLECTIVE(form, Neighbor_alltoallv, neighbor_alltoallv, send, counts, places, MPI_INT64_T, receive, counts,
                 places, MPI_INT64_T, n->comm);
    for (int k = 0; k < n->in_count; ++k)
      if (n->sources[k] >= 0)
        require_part(receive + places[k], count - 3, 100 * n->sources[k] + my_rank, "neighbor_alltoallv or w");
  }
  free(send);
  free(receive);
  free(own);
}

static Neighbours make_torus(int dimension_count, int periodic) {
  Neighbours n = {.in_count = 2 * dimension_count, .out_count = 2 * dimension_count};
  int dimensions[3] = {0, 0, 0}, periods[3] = {periodic, periodic, periodic};
  MPI_Dims_create(rank_count, dimension_count, dimensions);
  MPI_Cart_create(MPI_COMM_WORLD, dimension_count, dimensions, periods, 0, &n.comm);
  for (int d = 0; d < dimension_count; ++d) {
    MPI_Cart_shift(n.comm, d, 1, &n.sources[2 * d], &n.sources[2 * d + 1]);
    memcpy(&n.targets[2 * d], &n.sources[2 * d], 2 * sizeof(int));
  }
  return n;
}

// Rank r sends to r + 1 and r + 2; odd ranks also to 0, which therefore has many sources.
static Neighbours make_graph(void) {
  Neighbours n = {.in_count = 2, .out_count = 2};
  int odd_senders = 0;
  n.targets[0] = (my_rank + 1) % rank_count;
  n.targets[1] = (my_rank + 2) % rank_count;
  n.sources[0] = (my_rank + rank_count - 1) % rank_count;
  n.sources[1] = (my_rank + 2 * rank_count - 2) % rank_count;
  if (my_rank % 2 && my_rank < 12) n.targets[n.out_count++] = 0;
  for (int r = 1; my_rank == 0 && r < rank_count && r < 12; r += 2) {
    n.sources[n.in_count++] = r;
    ++odd_senders;
  }
  REQUIRE(odd_senders <= neighbour_max - 2, "too many sources");
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n.in_count, n.sources, MPI_UNWEIGHTED, n.out_count, n.targets,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &n.comm);
  return n;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  Neighbours all[] = {make_torus(1, 1), make_torus(2, 1), make_torus(3, 0), make_graph()};
  for (Form form = blocking; form < form_count; ++form) {
    for (int scale = 1; scale <= 1000; scale *= 10) {
      gatherv_scatterv_allgatherv(form, scale);
      alltoallv_and_w(form, scale, 0);
      alltoallv_and_w(form, scale, 1);
    }
    for (int k = 0; k < 4; ++k) neighbourhood(form, &all[k]);
  }
  for (int k = 0; k < 4; ++k) MPI_Comm_free(&all[k].comm);
  return check_end("collectives_v");
}
