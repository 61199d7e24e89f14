// Communicators: dup, split, split_type, create_group, intercommunicators and their collectives, topologies, cached
// attributes; messages of one communicator never match receives of another.
#include "check.h"

static int64_t sum_of_ranks(MPI_Comm comm) {
  int64_t mine = my_rank, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, comm);
  return sum;
}

static int64_t sum_below(int end) { return (int64_t)end * (end - 1) / 2; }

static void contexts_are_separate(void) {
  MPI_Comm one, two;
  MPI_Request requests[2];
  int from_one = -1, from_two = -1, sent_on_one = 1, sent_on_two = 2;
  MPI_Comm_dup(MPI_COMM_WORLD, &one);
  MPI_Comm_idup(MPI_COMM_WORLD, &two, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Irecv(&from_one, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, one, &requests[0]);
  MPI_Irecv(&from_two, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, two, &requests[1]);
  MPI_Send(&sent_on_two, 1, MPI_INT, right_rank(), 0, two);
  MPI_Send(&sent_on_one, 1, MPI_INT, right_rank(), 0, one);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  REQUIRE_EQUAL(from_one, 1, "the message on the first duplicate");
  REQUIRE_EQUAL(from_two, 2, "the message on the second duplicate");
  MPI_Comm_free(&one);
  MPI_Comm_free(&two);
}

static void split_orders_by_key(void) {
  MPI_Comm part, none;
  int color = my_rank % 3, rank, size;
  MPI_Comm_split(MPI_COMM_WORLD, color, -my_rank, &part);
  MPI_Comm_rank(part, &rank);
  MPI_Comm_size(part, &size);
  REQUIRE_EQUAL(size, (rank_count - color + 2) / 3, "the size of a third");
  REQUIRE_EQUAL(rank, size - 1 - my_rank / 3, "the rank by descending key");
  int64_t expected = 0;
  for (int r = color; r < rank_count; r += 3) expected += r;
  REQUIRE_EQUAL(sum_of_ranks(part), expected, "the sum over a third");
  MPI_Comm_split(MPI_COMM_WORLD, my_rank == 0 ? MPI_UNDEFINED : 0, 0, &none);
  REQUIRE((none == MPI_COMM_NULL) == (my_rank == 0), "MPI_UNDEFINED must give MPI_COMM_NULL and nothing else may");
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
  MPI_Comm_free(&part);
}

// Whatever MPI calls a shared-memory domain: its ranks must have one host name, and all domains make up the world.
static void shared_domains_are_hosts(void) {
  MPI_Comm shared;
  char name[MPI_MAX_PROCESSOR_NAME] = {0}, first[MPI_MAX_PROCESSOR_NAME];
  int length, rank;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, my_rank, MPI_INFO_NULL, &shared);
  MPI_Get_processor_name(name, &length);
  memcpy(first, name, sizeof name);
  MPI_Bcast(first, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, shared);
  REQUIRE(strcmp(first, name) == 0, "a shared-memory domain holds hosts %s and %s", first, name);
  MPI_Comm_rank(shared, &rank);
  int64_t leader = rank == 0, domains = 0, members = 1, total = 0;
  MPI_Allreduce(&leader, &domains, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&members, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  REQUIRE(domains >= 1 && domains <= rank_count, "there are %lld shared-memory domains", (long long)domains);
  REQUIRE_EQUAL(total, rank_count, "the ranks in all domains");
  MPI_Comm_free(&shared);
}

// Only the members call create_group; the others are meanwhile in a barrier among themselves.
static void create_group_needs_members_only(void) {
  MPI_Group world, upper;
  MPI_Comm comm;
  int first = rank_count / 2, range[1][3] = {{rank_count / 2, rank_count - 1, 1}}, rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, 1, range, &upper);
  if (my_rank >= first) {
    MPI_Comm_create_group(MPI_COMM_WORLD, upper, 17, &comm);
    MPI_Comm_rank(comm, &rank);
    REQUIRE_EQUAL(rank, my_rank - first, "the rank in the upper half");
    REQUIRE_EQUAL(sum_of_ranks(comm), sum_below(rank_count) - sum_below(first), "the sum over the upper half");
    MPI_Comm_free(&comm);
  }
  MPI_Comm_create(MPI_COMM_WORLD, upper, &comm);
  REQUIRE((comm == MPI_COMM_NULL) == (my_rank < first), "MPI_Comm_create gave a communicator to the wrong ranks");
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  MPI_Group_free(&upper);
  MPI_Group_free(&world);
}

// Two halves of the world, low and high, and collectives between them: what one half gives, the other gets.
static void intercommunicator(void) {
  MPI_Comm half, between, merged;
  int half_size, remote_size, local_rank, merged_rank, is_inter;
  int high = my_rank >= rank_count / 2;
  int remote_first = high ? 0 : rank_count / 2;
  MPI_Comm_split(MPI_COMM_WORLD, high, my_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, remote_first, 99, &between);
  MPI_Comm_test_inter(between, &is_inter);
  REQUIRE(is_inter, "an intercommunicator says that it is none");
  MPI_Comm_size(half, &half_size);
  MPI_Comm_remote_size(between, &remote_size);
  MPI_Comm_rank(between, &local_rank);
  REQUIRE_EQUAL(remote_size, rank_count - half_size, "the remote size");
  int64_t remote_sum = sum_below(remote_first + remote_size) - sum_below(remote_first);

  REQUIRE_EQUAL(sum_of_ranks(between), remote_sum, "the allreduce over the remote half");
  int64_t mine = my_rank, *all = allocate((size_t)rank_count * sizeof *all), *send = allocate((size_t)rank_count * 8);
  MPI_Allgather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, between);
  for (int r = 0; r < remote_size; ++r) REQUIRE_EQUAL(all[r], remote_first + r, "the remote allgather");
  for (int r = 0; r < remote_size; ++r) send[r] = 1000 * my_rank + r;
  MPI_Alltoall(send, 1, MPI_INT64_T, all, 1, MPI_INT64_T, between);
  for (int r = 0; r < remote_size; ++r)
    REQUIRE_EQUAL(all[r], 1000 * (remote_first + r) + local_rank, "the remote alltoall");
  int root = high ? 0 : local_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;  // rank 0 of the low half gives
  int64_t value = root == MPI_ROOT ? 4711 : -1;
  MPI_Bcast(&value, 1, MPI_INT64_T, root, between);
  if (high) REQUIRE_EQUAL(value, 4711, "the bcast between the halves");
  MPI_Request request;
  int64_t sum = -1;
  MPI_Ireduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, root, between, &request);  // the high half gives, low 0 gets
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (root == MPI_ROOT) REQUIRE_EQUAL(sum, remote_sum, "the reduce between the halves");
  MPI_Barrier(between);

  int64_t received = -1;
  MPI_Isend(&mine, 1, MPI_INT64_T, local_rank % remote_size, 5, between, &request);
  for (int r = local_rank; r < remote_size; r += half_size) {
    MPI_Recv(&received, 1, MPI_INT64_T, r, 5, between, MPI_STATUS_IGNORE);
    REQUIRE_EQUAL(received, remote_first + r, "a message between the halves");
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);

  MPI_Intercomm_merge(between, !high, &merged);  // the high half first
  MPI_Comm_rank(merged, &merged_rank);
  REQUIRE_EQUAL(merged_rank, high ? local_rank : remote_size + local_rank, "the merged rank");
  REQUIRE_EQUAL(sum_of_ranks(merged), sum_below(rank_count), "the sum after the merge");
  free(all);
  free(send);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

static void cartesian_topology(void) {
  MPI_Comm grid, row;
  int dimensions[2] = {0, 0}, periods[2] = {1, 0}, coordinates[2], rank, up, down, row_size;
  MPI_Dims_create(rank_count, 2, dimensions);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periods, 1, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, coordinates);
  REQUIRE_EQUAL(coordinates[0] * dimensions[1] + coordinates[1], rank, "the row-major rank");
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  int received = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, down, 0, &received, 1, MPI_INT, up, 0, grid, MPI_STATUS_IGNORE);
  REQUIRE_EQUAL(received, up, "the periodic neighbour's rank");
  MPI_Cart_shift(grid, 1, 1, &up, &down);
  REQUIRE((down == MPI_PROC_NULL) == (coordinates[1] == dimensions[1] - 1), "the edge of an open dimension");
  int keep[2] = {0, 1};
  MPI_Cart_sub(grid, keep, &row);
  MPI_Comm_size(row, &row_size);
  REQUIRE_EQUAL(row_size, dimensions[1], "the size of a row");
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
}

static void graph_topology(void) {
  MPI_Comm graph;
  int right = right_rank(), weight = my_rank + 1, degree = 1, in_count, out_count, weighted, source, target, in_weight,
      out_weight;
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &my_rank, &degree, &right, &weight, MPI_INFO_NULL, 0, &graph);
  MPI_Dist_graph_neighbors_count(graph, &in_count, &out_count, &weighted);
  REQUIRE(in_count == 1 && out_count == 1 && weighted, "a ring's ranks have one neighbour in and one out");
  MPI_Dist_graph_neighbors(graph, 1, &source, &in_weight, 1, &target, &out_weight);
  REQUIRE_EQUAL(source, left_rank(), "the neighbour in");
  REQUIRE_EQUAL(in_weight, left_rank() + 1, "the weight of the edge in");
  REQUIRE_EQUAL(target, right, "the neighbour out");
  MPI_Comm_free(&graph);
}

static int copied, deleted;

static int count_copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra;
  *(void**)out = in;
  *flag = 1;
  ++copied;
  return MPI_SUCCESS;
}

static int count_delete(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

static void attributes_follow_the_communicator(void) {
  MPI_Comm dup;
  int key, flag, *value, *tag_max, answer = 42;
  MPI_Comm_create_keyval(count_copy, count_delete, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &answer);
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_get_attr(dup, key, &value, &flag);
  REQUIRE(flag && *value == 42 && copied == 1, "the attribute was not copied to the duplicate");
  MPI_Comm_free(&dup);
  REQUIRE_EQUAL(deleted, 1, "attributes deleted with the duplicate");
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &flag);
  REQUIRE(flag && *tag_max >= 32767, "MPI_TAG_UB is missing or below the standard's minimum");
}

static void compare_tells_communicators_apart(void) {
  MPI_Comm dup;
  int result;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_compare(MPI_COMM_WORLD, dup, &result);
  REQUIRE_EQUAL(result, MPI_CONGRUENT, "a duplicate compared");
  MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result);
  REQUIRE_EQUAL(result, MPI_UNEQUAL, "self compared with the world");
  MPI_Comm_free(&dup);
}

// More communicators than a context-id table of one word holds; each must carry its own messages.
static void many_communicators(void) {
  enum { many = 50 };
  MPI_Comm comms[many];
  for (int i = 0; i < many; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < many; ++i) {
    int value = i;
    MPI_Bcast(&value, 1, MPI_INT, i % rank_count, comms[i]);
    REQUIRE_EQUAL(value, i, "the bcast on one of many communicators");
  }
  for (int i = 0; i < many; ++i) MPI_Comm_free(&comms[i]);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  contexts_are_separate();
  split_orders_by_key();
  shared_domains_are_hosts();
  create_group_needs_members_only();
  intercommunicator();
  cartesian_topology();
  graph_topology();
  attributes_follow_the_communicator();
  compare_tells_communicators_apart();
  many_communicators();
  return check_end("communicators");
}
