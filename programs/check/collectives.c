// The collectives that give every rank equal counts, in their blocking, nonblocking and persistent forms, out of place
// and in place, on all ranks and on a communicator with its ranks reversed, over sizes that change the algorithm.
// Counts of one's own per rank are collectives_v.c's subject, reductions reductions.c's.
#include "collective.h"

typedef struct {
  MPI_Comm comm;
  int rank, size;
  Form form;
  int count;  // elements of one block
  int64_t *send, *receive;
} Case;

static void fill_block(int64_t* block, int count, int seed) {
  for (int i = 0; i < count; ++i) block[i] = value_of(seed, i);
}

static void require_block(const Case* c, const int64_t* block, int seed, const char* what) {
  for (int i = 0; i < c->count; ++i)
    REQUIRE(block[i] == value_of(seed, i), "%s %s of %d elements: element %d is %lld and should be %lld",
            form_names[c->form], what, c->count, i, (long long)block[i], (long long)value_of(seed, i));
}

static void clear_receive(Case* c) { memset(c->receive, 0xff, (size_t)(c->size * c->count) * sizeof(int64_t)); }

static void barrier(Case* c) { COLLECTIVE(c->form, Barrier, barrier, c->comm); }

static void bcast(Case* c) {
  for (int root = 0; root < c->size; root += 1 + c->size / 2) {
    clear_receive(c);
    if (c->rank == root) fill_block(c->receive, c->count, root);
    COLLECTIVE(c->form, Bcast, bcast, c->receive, c->count, MPI_INT64_T, root, c->comm);
    require_block(c, c->receive, root, "bcast");
  }
}

static void gather(Case* c) {
  int root = c->size - 1;
  clear_receive(c);
  fill_block(c->send, c->count, c->rank);
  COLLECTIVE(c->form, Gather, gather, c->send, c->count, MPI_INT64_T, c->receive, c->count, MPI_INT64_T, root, c->comm);
  for (int r = 0; c->rank == root && r < c->size; ++r) require_block(c, c->receive + r * c->count, r, "gather");
  clear_receive(c);
  fill_block(c->receive + c->rank * c->count, c->count, c->rank);
  COLLECTIVE_IN_PLACE(c->form, Gather, gather, c->rank == root ? MPI_IN_PLACE : c->send, c->count, MPI_INT64_T,
                      c->receive, c->count, MPI_INT64_T, root, c->comm);
  for (int r = 0; c->rank == root && r < c->size; ++r)
    require_block(c, c->receive + r * c->count, r, "gather in place");
}

static void scatter(Case* c) {
  int root = c->size / 2;
  for (int in_place = 0; in_place < 2; ++in_place) {
    void* target = in_place && c->rank == root ? MPI_IN_PLACE : c->receive;
    clear_receive(c);
    for (int r = 0; r < c->size; ++r) fill_block(c->send + r * c->count, c->count, r);
    COLLECTIVE(c->form, Scatter, scatter, c->send, c->count, MPI_INT64_T, target, c->count, MPI_INT64_T, root, c->comm);
    if (target != MPI_IN_PLACE) require_block(c, c->receive, c->rank, "scatter");
  }
}

static void allgather(Case* c) {
  clear_receive(c);
  fill_block(c->send, c->count, c->rank);
  COLLECTIVE(c->form, Allgather, allgather, c->send, c->count, MPI_INT64_T, c->receive, c->count, MPI_INT64_T, c->comm);
  for (int r = 0; r < c->size; ++r) require_block(c, c->receive + r * c->count, r, "allgather");
  clear_receive(c);
  fill_block(c->receive + c->rank * c->count, c->count, c->rank);
  COLLECTIVE_IN_PLACE(c->form, Allgather, allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, c->receive, c->count,
                      MPI_INT64_T, c->comm);
  for (int r = 0; r < c->size; ++r) require_block(c, c->receive + r * c->count, r, "allgather in place");
}

// The block from rank s to rank t has seed 100 s + t.
static void alltoall(Case* c) {
  clear_receive(c);
  for (int r = 0; r < c->size; ++r) fill_block(c->send + r * c->count, c->count, 100 * c->rank + r);
  COLLECTIVE(c->form, Alltoall, alltoall, c->send, c->count, MPI_INT64_T, c->receive, c->count, MPI_INT64_T, c->comm);
  for (int r = 0; r < c->size; ++r) require_block(c, c->receive + r * c->count, 100 * r + c->rank, "alltoall");
  for (int r = 0; r < c->size; ++r) fill_block(c->receive + r * c->count, c->count, 100 * c->rank + r);
  COLLECTIVE_IN_PLACE(c->form, Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, c->receive, c->count,
                      MPI_INT64_T, c->comm);
  for (int r = 0; r < c->size; ++r) require_block(c, c->receive + r * c->count, 100 * r + c->rank, "alltoall in place");
}

// A persistent collective reads its buffers at each start.
static void persistent_reads_its_buffer_anew(Case* c) {
  MPI_Request request;
  MPI_Allgather_init(c->send, c->count, MPI_INT64_T, c->receive, c->count, MPI_INT64_T, c->comm, MPI_INFO_NULL,
                     &request);
  for (int start = 0; start < 3; ++start) {
    fill_block(c->send, c->count, 200 * start + c->rank);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int r = 0; r < c->size; ++r)
      require_block(c, c->receive + r * c->count, 200 * start + r, "allgather started again");
  }
  MPI_Request_free(&request);
}

// Ten collectives of two kinds are under way at once, completed by MPI_Testsome in whatever order they end.
static void many_at_once(Case* c) {
  enum { at_once = 10 };
  MPI_Request requests[at_once];
  int64_t *blocks = allocate((size_t)(at_once * c->count) * sizeof(int64_t)), sums[at_once], ranks[at_once];
  for (int i = 0; i < at_once; ++i) {
    int64_t* block = blocks + i * c->count;
    ranks[i] = c->rank + i;
    fill_block(block, c->count, c->rank == i % c->size ? i : -1);
    if (i % 2)
      MPI_Iallreduce(&ranks[i], &sums[i], 1, MPI_INT64_T, MPI_SUM, c->comm, &requests[i]);
    else
      MPI_Ibcast(block, c->count, MPI_INT64_T, i % c->size, c->comm, &requests[i]);
  }
  for (int done = 0, some, indices[at_once]; done < at_once; done += some)
    MPI_Testsome(at_once, requests, &some, indices, MPI_STATUSES_IGNORE);
  for (int i = 0; i < at_once; ++i) {
    if (i % 2)
      REQUIRE_EQUAL(sums[i], c->size * (c->size - 1) / 2 + i * c->size, "one of many sums");
    else
      require_block(c, blocks + i * c->count, i, "one of many bcasts");
  }
  free(blocks);
}

static void run_on(MPI_Comm comm) {
  static const int counts[] = {1, 33, 3000};
  Case c = {.comm = comm};
  MPI_Comm_rank(comm, &c.rank);
  MPI_Comm_size(comm, &c.size);
  for (int k = 0; k < 3; ++k) {
    c.count = counts[k];
    c.send = allocate((size_t)(c.size * c.count) * sizeof(int64_t));
    c.receive = allocate((size_t)(c.size * c.count) * sizeof(int64_t));
    for (c.form = blocking; c.form < form_count; ++c.form) {
      barrier(&c);
      bcast(&c);
      gather(&c);
      scatter(&c);
      allgather(&c);
      alltoall(&c);
    }
    c.form = persistent;
    persistent_reads_its_buffer_anew(&c);
    c.form = nonblocking;
    many_at_once(&c);
    free(c.send);
    free(c.receive);
  }
}

int main(int argc, char** argv) {
  MPI_Comm reversed;
  check_begin(&argc, &argv);
  run_on(MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -my_rank, &reversed);
  run_on(reversed);
  MPI_Comm_free(&reversed);
  return check_end("collectives");
}
