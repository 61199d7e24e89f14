// Collective calls, blocking and not, on as many ranks as there are and on a power of two of them.
#pragma once
#include "measure.h"

static int counts[most_ranks], places[most_ranks], parts[most_ranks];
static MPI_Request pending;

static void wait_for(int way) {
  int flag;
  switch (way % 3) {
    case 0:
      MPI_Wait(&pending, IGNORE);
      break;
    case 1:
      UNTIL(flag, MPI_Test(&pending, &flag, IGNORE));
      break;
    default:
      MPI_Waitall(1, &pending, ALL_IGNORED);
  }
}

#define BLOCKS mine, each, MPI_DOUBLE, theirs, each, MPI_DOUBLE
#define BLOCKS_V mine, each, MPI_DOUBLE, theirs, counts, places, MPI_DOUBLE
#define V_BLOCKS mine, counts, places, MPI_DOUBLE, theirs, each, MPI_DOUBLE
#define V_BLOCKS_V mine, counts, places, MPI_DOUBLE, theirs, counts, places, MPI_DOUBLE
#define ADD(count) mine, theirs, count, MPI_DOUBLE, MPI_SUM

// `each`: doubles of a rank's block; of a reduction all blocks together are `doubles`.
static void blocking(MPI_Comm comm, int doubles, int each, int root) {
  MPI_Barrier(comm);
  MPI_Bcast(mine, doubles, MPI_DOUBLE, root, comm);
  MPI_Reduce(ADD(doubles), root, comm);
  MPI_Allreduce(ADD(doubles), comm);
  MPI_Allreduce(MPI_IN_PLACE, theirs, doubles, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Gather(BLOCKS, root, comm);
  MPI_Gatherv(BLOCKS_V, root, comm);
  MPI_Scatter(BLOCKS, root, comm);
  MPI_Scatterv(V_BLOCKS, root, comm);
  MPI_Allgather(BLOCKS, comm);
  MPI_Allgatherv(BLOCKS_V, comm);
  MPI_Alltoall(BLOCKS, comm);
  MPI_Alltoallv(V_BLOCKS_V, comm);
  MPI_Reduce_scatter(ADD(parts), comm);
  MPI_Reduce_scatter_block(ADD(parts[0]), comm);
  MPI_Scan(ADD(doubles), comm);
  MPI_Exscan(ADD(doubles), comm);
}

static void nonblocking(MPI_Comm comm, int doubles, int each, int root) {
  int way = 0;
  MPI_Ibarrier(comm, &pending), wait_for(way++);
  MPI_Ibcast(mine, doubles, MPI_DOUBLE, root, comm, &pending), wait_for(way++);
  MPI_Ireduce(ADD(doubles), root, comm, &pending), wait_for(way++);
  MPI_Iallreduce(ADD(doubles), comm, &pending), wait_for(way++);
  MPI_Igather(BLOCKS, root, comm, &pending), wait_for(way++);
  MPI_Igatherv(BLOCKS_V, root, comm, &pending), wait_for(way++);
  MPI_Iscatter(BLOCKS, root, comm, &pending), wait_for(way++);
  MPI_Iscatterv(V_BLOCKS, root, comm, &pending), wait_for(way++);
  MPI_Iallgather(BLOCKS, comm, &pending), wait_for(way++);
  MPI_Iallgatherv(BLOCKS_V, comm, &pending), wait_for(way++);
  MPI_Ialltoall(BLOCKS, comm, &pending), wait_for(way++);
  MPI_Ialltoallv(V_BLOCKS_V, comm, &pending), wait_for(way++);
  MPI_Ireduce_scatter(ADD(parts), comm, &pending), wait_for(way++);
  MPI_Ireduce_scatter_block(ADD(parts[0]), comm, &pending), wait_for(way++);
  MPI_Iscan(ADD(doubles), comm, &pending), wait_for(way++);
  MPI_Iexscan(ADD(doubles), comm, &pending), wait_for(way++);
}

static void lay_out(int members, int doubles, int each) {
  for (int i = 0; i < members; ++i) {
    counts[i] = each;
    parts[i] = doubles / members > 0 ? doubles / members : 1;
    places[i] = i * each;
  }
}

static void collectives(MPI_Comm comm, int size, int root) {
  int members;
  MPI_Comm_size(comm, &members);
  const int doubles = size / 8, each = doubles;
  MPI_Datatype types[most_ranks];
  int bytes[most_ranks];
  lay_out(members, doubles, each);
  for (int i = 0; i < members; ++i) {
    bytes[i] = i * each * 8;
    types[i] = MPI_DOUBLE;
  }
  blocking(comm, doubles, each, root);
  MPI_Alltoallw(mine, counts, bytes, types, theirs, counts, bytes, types, comm);
  nonblocking(comm, doubles, each, root);
}

// What libraries choose where ranks are many, such as alltoalls in as many steps as a power of two has bits.
static void wide_collectives(void) {
  static const int sizes[] = {8, 64, 512, 8192};
  for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    const int doubles = sizes[i] / 8;
    lay_out(rank_count, doubles, doubles);
    for (int turn = 0; turn < 2; ++turn) blocking(WORLD, doubles, doubles, 0);
  }
}

static void persistent_collectives(int doubles, int each) {
  MPI_Request made[4];
  MPI_Barrier_init(WORLD, MPI_INFO_NULL, &made[0]);
  MPI_Bcast_init(mine, doubles, MPI_DOUBLE, 0, WORLD, MPI_INFO_NULL, &made[1]);
  MPI_Allreduce_init(ADD(doubles), WORLD, MPI_INFO_NULL, &made[2]);
  MPI_Alltoall_init(BLOCKS, WORLD, MPI_INFO_NULL, &made[3]);
  for (int i = 0; i < 4; ++i) {
    for (int turn = 0; turn < 2; ++turn) {
      MPI_Start(&made[i]);
      MPI_Wait(&made[i], IGNORE);
    }
    MPI_Request_free(&made[i]);
  }
}

// Of which even a part is too long to be sent at once.
static void long_collectives(void) {
  const int doubles = 128 * 1024 / 8;
  for (int i = 0; i < rank_count; ++i) parts[i] = doubles / rank_count;
  MPI_Bcast(mine, 2 * doubles, MPI_DOUBLE, 0, WORLD);
  MPI_Reduce(ADD(doubles), 0, WORLD);
  MPI_Allreduce(ADD(doubles), WORLD);
  MPI_Reduce_scatter(ADD(parts), WORLD);
  MPI_Reduce_scatter_block(ADD(parts[0]), WORLD);
}

static void neighbors(MPI_Comm comm, int size) {
  int members, sizes[2] = {0, 0};
  const int periods[2] = {1, 1};
  MPI_Comm grid, row;
  MPI_Comm_size(comm, &members);
  MPI_Dims_create(members, 2, sizes);
  MPI_Cart_create(comm, 2, sizes, periods, 0, &grid);
  const int keeps[2] = {1, 0}, each = size / 8;
  for (int i = 0; i < 4; ++i) {
    counts[i] = each;
    places[i] = i * each;
  }
  MPI_Neighbor_alltoall(BLOCKS, grid);
  MPI_Neighbor_allgather(BLOCKS, grid);
  MPI_Neighbor_alltoallv(V_BLOCKS_V, grid);
  MPI_Neighbor_allgatherv(BLOCKS_V, grid);
  MPI_Ineighbor_alltoall(BLOCKS, grid, &pending);
  MPI_Wait(&pending, IGNORE);
  MPI_Ineighbor_alltoallv(V_BLOCKS_V, grid, &pending);
  MPI_Wait(&pending, IGNORE);
  MPI_Cart_sub(grid, keeps, &row);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
}

static void communicators(void) {
  MPI_Comm made, other;
  MPI_Group group;
  const int weight = 1;
  MPI_Comm_split(WORLD, rank_of_me % 2, 0, &made);
  MPI_Intercomm_create(made, 0, WORLD, 1 - rank_of_me % 2, 3, &other);
  MPI_Comm_free(&made);
  MPI_Intercomm_merge(other, rank_of_me % 2, &made);
  MPI_Comm_free(&other);
  MPI_Comm_free(&made);
  MPI_Comm_dup(WORLD, &made);
  MPI_Comm_group(made, &group);
  MPI_Comm_create(made, group, &other);
  MPI_Comm_free(&other);
  MPI_Comm_create_group(made, group, 5, &other);
  MPI_Comm_free(&other);
  MPI_Group_free(&group);
  MPI_Comm_free(&made);
  MPI_Comm_idup(WORLD, &made, &pending);
  MPI_Wait(&pending, IGNORE);
  MPI_Comm_free(&made);
  MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  MPI_Comm_free(&made);
  MPI_Dist_graph_create_adjacent(WORLD, 1, &left, &weight, 1, &right, &weight, MPI_INFO_NULL, 0, &made);
  MPI_Comm_free(&made);
}
