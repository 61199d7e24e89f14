/* Reductions in the fabric: what libfabric and its cxi provider say of barriers, broadcasts and small reductions. Any
 * number of ranks from three on. Results are compared with the same computation in C; what the provider refuses is
 * refused with its error. With a number as argument, that many allreduces of one double are timed instead. */
#include <math.h>
#include <rdma/fi_collective.h>
#include <xmmintrin.h>

#include "group.h"

enum { words = 4, extremes = 32, reproducible = 33, pre_reduced_bit = 0 };

/* What rank r gives in its round to word w. */
static int64_t integer_of(int r, int round, int w) { return (int64_t)(r + 1) * (w % 2 ? -7 : 11) + round * 1000 + w; }
static double double_of(int r, int round, int w) { return (double)integer_of(r, round, w) * 0.25 + 0.125; }

static void sums_and_extremes_of_integers(void) {
  static const enum fi_op ops[] = {FI_SUM, FI_MIN, FI_MAX};
  for (int round = 0; round < 3; ++round) {
    for (size_t count = 1; count <= words; ++count) {
      int64_t mine[words], result[words] = {0}, expected[words];
      for (int w = 0; w < words; ++w) {
        mine[w] = integer_of(me, round, w);
        expected[w] = integer_of(0, round, w);
        for (int r = 1; r < size; ++r) {
          const int64_t other = integer_of(r, round, w);
          if (ops[round] == FI_SUM) expected[w] += other;
          if (ops[round] == FI_MIN && other < expected[w]) expected[w] = other;
          if (ops[round] == FI_MAX && other > expected[w]) expected[w] = other;
        }
      }
      OK(fi_allreduce(ep, mine, count, NULL, result, NULL, all, FI_INT64, ops[round], 0, mine));
      wait_for(mine);
      for (size_t w = 0; w < words; ++w) CHECK(result[w] == (w < count ? expected[w] : 0));
    }
  }
}

static void sums_and_extremes_of_doubles(void) {
  static const enum fi_op ops[] = {FI_SUM, FI_MIN, FI_MAX};
  for (int round = 0; round < 3; ++round) {
    double mine[words], result[words], expected[words];
    for (int w = 0; w < words; ++w) {
      mine[w] = double_of(me, round, w);
      expected[w] = double_of(0, round, w);
      for (int r = 1; r < size; ++r) {
        const double other = double_of(r, round, w);
        if (ops[round] == FI_SUM) expected[w] += other;
        if (ops[round] == FI_MIN && other < expected[w]) expected[w] = other;
        if (ops[round] == FI_MAX && other > expected[w]) expected[w] = other;
      }
    }
    OK(fi_allreduce(ep, mine, words, NULL, result, NULL, all, FI_DOUBLE, ops[round], 0, mine));
    wait_for(mine);
    for (int w = 0; w < words; ++w) CHECK(result[w] == expected[w]);
  }
  /* No number in one of them. */
  double mine = me == 1 ? (double)NAN : me + 2.0;
  double result;
  OK(fi_allreduce(ep, &mine, 1, NULL, &result, NULL, all, FI_DOUBLE, FI_MIN, 0, &mine));
  wait_for(&mine);
  CHECK(result == 2.0);
}

static void bits(void) {
  static const struct {
    enum fi_datatype type;
    size_t bytes;
  } types[] = {{FI_UINT8, 1},  {FI_INT8, 1},  {FI_UINT16, 2}, {FI_INT16, 2},
               {FI_UINT32, 4}, {FI_INT32, 4}, {FI_UINT64, 8}};
  static const enum fi_op ops[] = {FI_BOR, FI_BAND, FI_BXOR};
  for (size_t t = 0; t < sizeof types / sizeof types[0]; ++t) {
    for (size_t o = 0; o < 3; ++o) {
      unsigned char mine[32], result[32], expected[32];
      for (int b = 0; b < 32; ++b) {
        for (int r = 0; r < size; ++r) {
          const unsigned char other = (unsigned char)(0x5b * (r + 3) + 17 * b + (int)t);
          if (r == me) mine[b] = other;
          if (r == 0)
            expected[b] = other;
          else if (ops[o] == FI_BOR)
            expected[b] |= other;
          else if (ops[o] == FI_BAND)
            expected[b] &= other;
          else
            expected[b] ^= other;
        }
      }
      OK(fi_allreduce(ep, mine, 32 / types[t].bytes, NULL, result, NULL, all, types[t].type, ops[o], 0, mine));
      wait_for(mine);
      CHECK(memcmp(result, expected, 32) == 0);
    }
  }
}

static void extremes_with_places_and_the_reproducible_sum(void) {
  struct {
    int64_t least;
    uint64_t least_at;
    int64_t most;
    uint64_t most_at;
  } mine = {100 - me / 2, (uint64_t)me, 5 + me % 2, (uint64_t)me}, result;
  OK(fi_allreduce(ep, &mine, 1, NULL, &result, NULL, all, FI_INT64, (enum fi_op)extremes, 0, &mine));
  wait_for(&mine);
  CHECK(result.least == 100 - (size - 1) / 2 && result.least_at == (uint64_t)(size - 1) / 2 * 2);
  CHECK(result.most == 6 && result.most_at == 1);
  /* Large ones cancel; doubles added one after the other would lose the small ones. */
  double part = me == 0 ? 1e17 : me == 1 ? -1e17 : 0.5;
  double sum = 0;
  OK(fi_allreduce(ep, &part, 1, NULL, &sum, NULL, all, FI_DOUBLE, (enum fi_op)reproducible, 0, &part));
  wait_for(&part);
  CHECK(sum == 0.5 * (size - 2));
}

static void broadcasts_and_reduces(void) {
  for (int root = 0; root < size; root += size - 1) {
    double values[words];
    for (int w = 0; w < words; ++w) values[w] = me == root ? double_of(root, 5, w) : -1.0;
    OK(fi_broadcast(ep, values, words, NULL, all, (fi_addr_t)root, FI_DOUBLE, 0, values));
    wait_for(values);
    for (int w = 0; w < words; ++w) CHECK(values[w] == double_of(root, 5, w));
    int64_t mine = me + 1, result = -1;
    OK(fi_reduce(ep, &mine, 1, NULL, me == root ? &result : NULL, NULL, all, (fi_addr_t)root, FI_INT64, FI_SUM, 0,
                 &mine));
    wait_for(&mine);
    CHECK(result == (me == root ? (int64_t)size * (size + 1) / 2 : -1));
  }
}

/* Contributions of several "threads" of a rank, reduced before they are given away. */
static void reduced_beforehand(void) {
  struct {
    unsigned char bytes[64];
  } accumulator;
  memset(&accumulator, 0, sizeof accumulator);
  for (int64_t part = 0; part < 3; ++part) {
    const int64_t value = me * 10 + part;
    OK(fi_allreduce(ep, &value, 1, NULL, &accumulator, NULL, all, FI_INT64, FI_SUM, FI_MORE, NULL));
  }
  int64_t sum = 0;
  OK(fi_allreduce(ep, &accumulator, 1, NULL, &sum, NULL, all, FI_INT64, FI_SUM, FI_SOURCE, &sum));
  wait_for(&sum);
  CHECK(sum == 3LL * size + 30LL * size * (size - 1) / 2);
}

static void eight_at_once(void) {
  int64_t mine[9], result[9];
  for (int i = 0; i < 9; ++i) mine[i] = (me + 1) * (i + 1);
  for (int i = 0; i < 8; ++i) {
    OK(fi_allreduce(ep, &mine[i], 1, NULL, &result[i], NULL, all, FI_INT64, FI_SUM, 0, &mine[i]));
  }
  CHECK(fi_allreduce(ep, &mine[8], 1, NULL, &result[8], NULL, all, FI_INT64, FI_SUM, 0, NULL) == -FI_EAGAIN);
  for (int i = 0; i < 8; ++i) { /* in the order of the calls */
    wait_for(&mine[i]);
    CHECK(result[i] == (int64_t)(i + 1) * size * (size + 1) / 2);
  }
}

static void errors_of_reductions(void) {
  struct fi_cq_err_entry error;
  int64_t large = INT64_MAX, result;
  OK(fi_allreduce(ep, &large, 1, NULL, &result, NULL, all, FI_INT64, FI_SUM, 0, &large));
  wait_error(&error);
  CHECK(error.op_context == &large && error.err == -FI_EOTHER && error.prov_errno == 1026);
  OK(fi_allreduce(ep, &large, 1, NULL, &result, NULL, all, FI_INT64, me == 0 ? FI_MIN : FI_MAX, 0, &large));
  wait_error(&error);
  CHECK(error.prov_errno == 1028);
}

static void refusals(void) {
  int64_t mine[5] = {0}, result[5];
  double real[5] = {0};
  CHECK(fi_allreduce(ep, mine, 5, NULL, result, NULL, all, FI_INT64, FI_SUM, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, mine, 33, NULL, result, NULL, all, FI_UINT8, FI_BOR, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, mine, 0, NULL, result, NULL, all, FI_INT64, FI_SUM, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, mine, 1, NULL, NULL, NULL, all, FI_INT64, FI_SUM, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, mine, 1, NULL, result, NULL, all, FI_INT64, FI_BOR, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, mine, 1, NULL, result, NULL, all, FI_UINT64, FI_SUM, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, mine, 1, NULL, result, NULL, all, FI_INT64, FI_PROD, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, real, 1, NULL, real, NULL, all, FI_FLOAT, FI_SUM, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, real, 2, NULL, real, NULL, all, FI_DOUBLE, (enum fi_op)reproducible, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allreduce(ep, mine, 1, NULL, result, NULL, 0, FI_INT64, FI_SUM, 0, NULL) == -FI_EINVAL);
  CHECK(fi_broadcast(ep, mine, 5, NULL, all, 0, FI_INT64, 0, NULL) == -FI_EINVAL);
  CHECK(fi_broadcast(ep, mine, 1, NULL, all, 0, FI_INT64, FI_MORE, NULL) == -FI_EINVAL);
  if (me == 0) CHECK(fi_reduce(ep, mine, 1, NULL, NULL, NULL, all, 0, FI_INT64, FI_SUM, 0, NULL) == -FI_EINVAL);
  CHECK(fi_allgather(ep, mine, 1, NULL, result, NULL, all, FI_INT64, 0, NULL) == -FI_ENOSYS);
  CHECK(fi_alltoall(ep, mine, 1, NULL, result, NULL, all, FI_INT64, 0, NULL) == -FI_ENOSYS);
  CHECK(fi_barrier2(ep, all, FI_COMPLETION, NULL) == -FI_ENOSYS);
  fi_addr_t address = 0;
  CHECK(fi_av_set_addr(whole, &address) == 0 && address == FI_ADDR_NOTAVAIL);
  CHECK(fi_av_set_insert(whole, 0) == -FI_EPERM); /* a group stands on it */
  CHECK(fi_close(&whole->fid) == -FI_EBUSY);
}

static void what_can_be_asked(void) {
  struct fi_collective_attr attr;
  memset(&attr, 0, sizeof attr);
  OK(fi_query_collective(domain, FI_BARRIER, NULL, 0));
  CHECK(fi_query_collective(domain, FI_ALLREDUCE, NULL, 0) == -FI_EINVAL);
  attr.op = FI_SUM;
  attr.datatype = FI_DOUBLE;
  OK(fi_query_collective(domain, FI_ALLREDUCE, &attr, 0));
  CHECK(attr.datatype_attr.count == 4 && attr.datatype_attr.size == 8 && attr.max_members == (1U << 20) - 1);
  CHECK(fi_query_collective(domain, FI_ALLREDUCE, &attr, FI_SCATTER) == -FI_EOPNOTSUPP);
  CHECK(fi_query_collective(domain, FI_ALLGATHER, &attr, 0) == -FI_EOPNOTSUPP);
  attr.datatype = FI_UINT64;
  CHECK(fi_query_collective(domain, FI_REDUCE, &attr, 0) == -FI_EOPNOTSUPP);
  attr.op = FI_BXOR;
  attr.datatype = FI_UINT16;
  OK(fi_query_collective(domain, FI_REDUCE, &attr, 0));
  CHECK(attr.datatype_attr.count == 16 && attr.datatype_attr.size == 2);
  attr.op = FI_PROD;
  CHECK(fi_query_collective(domain, FI_REDUCE, &attr, 0) == -FI_EOPNOTSUPP);
}

static void barriers(void) {
  const double late = 3e-6 * me; /* the last one comes this much later than the first */
  for (int round = 0; round < 20; ++round) {
    const double begin = MPI_Wtime();
    while (MPI_Wtime() < begin + late) {
    }
    char context;
    OK(fi_barrier(ep, all, &context));
    wait_for(&context);
    CHECK(MPI_Wtime() >= begin); /* and nobody leaves before the last has come: see below */
  }
  double entered = MPI_Wtime(), latest, left;
  char context;
  OK(fi_barrier(ep, all, &context));
  wait_for(&context);
  left = MPI_Wtime();
  OK(fi_allreduce(ep, &entered, 1, NULL, &latest, NULL, all, FI_DOUBLE, FI_MAX, 0, &latest));
  wait_for(&latest);
  CHECK(left > latest);
}

static int has(struct fid_av_set* set, fi_addr_t address) {
  if (fi_av_set_remove(set, address) != 0) return 0;
  OK(fi_av_set_insert(set, address));
  return 1;
}

static void sets(void) {
  struct fid_av_set *one = open_set(), *other = open_set();
  OK(fi_av_set_insert(one, 0));
  OK(fi_av_set_insert(one, 1));
  OK(fi_av_set_insert(other, 1));
  OK(fi_av_set_insert(other, 2));
  OK(fi_av_set_union(one, other));
  CHECK(has(one, 0) && has(one, 1) && has(one, 2));
  OK(fi_av_set_diff(one, other));
  CHECK(has(one, 0) && !has(one, 1) && !has(one, 2));
  OK(fi_av_set_insert(one, 2));
  OK(fi_av_set_intersect(one, other));
  CHECK(!has(one, 0) && !has(one, 1) && has(one, 2));
  struct fi_av_set_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.start_addr = 0;
  attributes.end_addr = 2;
  attributes.count = 8;
  attributes.stride = 2;
  struct fid_av_set* range;
  OK(fi_av_set(av, &attributes, &range, NULL));
  CHECK(has(range, 0) && !has(range, 1) && has(range, 2));
  attributes.count = 0;
  struct fid_av_set* none;
  CHECK(fi_av_set(av, &attributes, &none, NULL) == -FI_EINVAL);
  OK(fi_close(&range->fid));
  OK(fi_close(&one->fid));
  OK(fi_close(&other->fid));
}

/* The halves and the whole, in turns and at once. */
static void several_groups(void) {
  struct fid_av_set* half = open_set();
  for (int r = me % 2; r < size; r += 2) OK(fi_av_set_insert(half, (fi_addr_t)r));
  CHECK(fi_av_set_insert(half, (fi_addr_t)(me % 2)) == -FI_EINVAL);
  struct fid_av_set* strange = open_set();
  OK(fi_av_set_insert(strange, (fi_addr_t)((me + 1) % size)));
  struct fid_mc* group = (struct fid_mc*)1;
  CHECK(fi_join_collective(ep, FI_ADDR_NOTAVAIL, strange, 0, &group, NULL) == -FI_EADDRNOTAVAIL);
  CHECK(fi_join_collective(ep, 0, half, 0, &group, NULL) == -FI_EINVAL);
  OK(fi_close(&strange->fid));
  OK(fi_join_collective(ep, FI_ADDR_NOTAVAIL, half, 0, &group, &group));
  CHECK(group == NULL);
  struct fid_mc* second;
  CHECK(fi_join_collective(ep, FI_ADDR_NOTAVAIL, half, 0, &second, NULL) == -FI_EAGAIN);
  wait_joined(&group, &group);
  const fi_addr_t address = fi_mc_addr(group);
  int64_t mine = me + 1, of_half = 0, of_all = 0, expected = 0;
  for (int r = me % 2; r < size; r += 2) expected += r + 1;
  for (int round = 0; round < 5; ++round) {
    OK(fi_allreduce(ep, &mine, 1, NULL, &of_half, NULL, address, FI_INT64, FI_SUM, 0, &of_half));
    OK(fi_allreduce(ep, &mine, 1, NULL, &of_all, NULL, all, FI_INT64, FI_SUM, 0, &of_all));
    wait_any(2);
    CHECK(of_half == expected && of_all == (int64_t)size * (size + 1) / 2);
  }
  OK(fi_close(&group->fid));
  OK(fi_close(&half->fid));
}

/* Every end-point can be the root of one group only: the join after that fails, and says why in the event queue. */
static void more_groups_than_roots(void) {
  struct fid_mc* groups[64];
  int made = 0;
  for (;;) {
    CHECK(made < size);
    OK(fi_join_collective(ep, FI_ADDR_NOTAVAIL, whole, 0, &groups[made], NULL));
    const int error = joined_or_error();
    if (error != 0) {
      CHECK(error == 2049);
      break;
    }
    ++made;
  }
  CHECK(made == size - 1);
  while (made > 0) OK(fi_close(&groups[--made]->fid));
}

static void timed(int count) {
  char context;
  double mine = me, sum;
  for (int i = 0; i < 16; ++i) { /* arms the engines */
    OK(fi_barrier(ep, all, &context));
    wait_for(&context);
  }
  const double begin = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    OK(fi_allreduce(ep, &mine, 1, NULL, &sum, NULL, all, FI_DOUBLE, FI_SUM, 0, &sum));
    wait_for(&sum);
  }
  const double in_fabric = (MPI_Wtime() - begin) / count;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double from = MPI_Wtime();
  for (int i = 0; i < count; ++i) MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double in_software = (MPI_Wtime() - from) / count;
  if (me == 0)
    printf("%d ranks: allreduce of a double: fabric %.3f us, MPI %.3f us\n", size, in_fabric * 1e6, in_software * 1e6);
}

int main(int count, char** arguments) {
  start();
  if (count > 1) {
    timed(atoi(arguments[1]));
    finish();
    return 0;
  }
  what_can_be_asked();
  sets();
  barriers();
  sums_and_extremes_of_integers();
  sums_and_extremes_of_doubles();
  bits();
  extremes_with_places_and_the_reproducible_sum();
  broadcasts_and_reduces();
  reduced_beforehand();
  eight_at_once();
  errors_of_reductions();
  refusals();
  several_groups();
  more_groups_than_roots();
  finish();
  printf("rank %d: collectives: all as libfabric says\n", me);
  return 0;
}
