/* Two ranks: what libfabric promises of reads, writes and atomics. Rank 0 acts on the memory of rank 1; every atomic
 * that the provider says is valid is compared with the same computation in C. */
#include <complex.h>

#include "rank.h"

static uint64_t next_random(void) {
  static uint64_t state = 0x9e3779b97f4a7c15ULL;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static void wait_memory_operations(uint64_t count) {
  while (fi_cntr_read(memory_operations) < count) {
  }
}

static void reads_and_writes(void) {
  static const size_t sizes[] = {0, 1, 192, 193, 20000, 500000};
  if (me == 0) {
    char* out = malloc(region_bytes);
    char* back = malloc(region_bytes);
    for (int i = 0; i < region_bytes; ++i) out[i] = (char)next_random();
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
      const uint64_t offset = 1000 + s;
      struct fi_cq_tagged_entry entry;
      OK(fi_write(ep, out + s, sizes[s], NULL, 1, offset, region_key, out));
      wait_entry(&entry);
      CHECK(entry.op_context == out);
      CHECK(entry.flags == (FI_RMA | FI_WRITE));
      memset(back, 0, sizes[s] + 1);
      OK(fi_read(ep, back, sizes[s], NULL, 1, offset, region_key, back));
      wait_entry(&entry);
      CHECK(entry.op_context == back);
      CHECK(entry.flags == (FI_RMA | FI_READ));
      CHECK(memcmp(out + s, back, sizes[s]) == 0);
      CHECK(back[sizes[s]] == 0);
    }
    /* Counted, not reported: an inject, and messages without FI_COMPLETION. */
    const uint64_t before = fi_cntr_read(memory_operations);
    uint64_t value = 0x1122334455667788ULL;
    uint64_t got = 0;
    struct iovec part = {&got, sizeof got};
    struct fi_rma_iov place = {64, sizeof got, region_key};
    struct fi_msg_rma message = {&part, NULL, 1, 1, &place, 1, NULL, 0};
    OK(fi_inject_write(ep, &value, sizeof value, 1, 64, region_key));
    wait_memory_operations(before + 1);
    value = 0;
    OK(fi_readmsg(ep, &message, 0));
    wait_memory_operations(before + 2);
    CHECK(got == 0x1122334455667788ULL);
    free(out);
    free(back);
  }
  barrier();
}

/* Beyond the region, and no such region: an error completion, and the memory is untouched. */
static void refused_accesses(void) {
  if (me == 0) {
    const uint64_t failed = fi_cntr_readerr(memory_operations);
    struct fi_cq_err_entry error;
    int context;
    char bytes[16] = {0};
    OK(fi_write(ep, bytes, sizeof bytes, NULL, 1, region_bytes - 8, region_key, &context));
    wait_error(&error);
    CHECK(error.op_context == &context);
    OK(fi_read(ep, bytes, sizeof bytes, NULL, 1, 0, region_key + 1, &context));
    wait_error(&error);
    CHECK(error.err == FI_EKEYREJECTED);
    CHECK(fi_cntr_readerr(memory_operations) == failed + 2);
  }
  barrier();
}

/* target = target op operand, as C has it. Each returns whether the operation is one of its kind. */
#define ORDERED(type)       \
  case FI_MIN:              \
    *t = *o < *t ? *o : *t; \
    return 1;               \
  case FI_MAX:              \
    *t = *o > *t ? *o : *t; \
    return 1;               \
  case FI_CSWAP_LE:         \
    if (*c <= *t) *t = *o;  \
    return 1;               \
  case FI_CSWAP_LT:         \
    if (*c < *t) *t = *o;   \
    return 1;               \
  case FI_CSWAP_GE:         \
    if (*c >= *t) *t = *o;  \
    return 1;               \
  case FI_CSWAP_GT:         \
    if (*c > *t) *t = *o;   \
    return 1;
#define ANY(type)          \
  case FI_SUM:             \
    *t = (type)(*t + *o);  \
    return 1;              \
  case FI_ATOMIC_READ:     \
    return 1;              \
  case FI_ATOMIC_WRITE:    \
    *t = *o;               \
    return 1;              \
  case FI_CSWAP:           \
    if (*c == *t) *t = *o; \
    return 1;              \
  case FI_CSWAP_NE:        \
    if (*c != *t) *t = *o; \
    return 1;
#define BITS(type)                       \
  case FI_LOR:                           \
    *t = *t || *o;                       \
    return 1;                            \
  case FI_LAND:                          \
    *t = *t && *o;                       \
    return 1;                            \
  case FI_LXOR:                          \
    *t = !*t != !*o;                     \
    return 1;                            \
  case FI_BOR:                           \
    *t = (type)(*t | *o);                \
    return 1;                            \
  case FI_BAND:                          \
    *t = (type)(*t & *o);                \
    return 1;                            \
  case FI_BXOR:                          \
    *t = (type)(*t ^ *o);                \
    return 1;                            \
  case FI_MSWAP:                         \
    *t = (type)((*o & *c) | (*t & ~*c)); \
    return 1;
#define NO_ORDER(type)
#define NO_BITS(type)
#define APPLY(name, type, ordered, bits)                                             \
  static int name(int op, void* target, const void* operand, const void* compared) { \
    type* t = target;                                                                \
    const type* o = operand;                                                         \
    const type* c = compared;                                                        \
    switch (op) { ANY(type) ordered(type) bits(type) default : return 0; }           \
  }
__extension__ typedef unsigned __int128 uint128;
__extension__ typedef __int128 int128;
APPLY(apply_int8, int8_t, ORDERED, BITS)
APPLY(apply_uint8, uint8_t, ORDERED, BITS)
APPLY(apply_int16, int16_t, ORDERED, BITS)
APPLY(apply_uint16, uint16_t, ORDERED, BITS)
APPLY(apply_int32, int32_t, ORDERED, BITS)
APPLY(apply_uint32, uint32_t, ORDERED, BITS)
APPLY(apply_int64, int64_t, ORDERED, BITS)
APPLY(apply_uint64, uint64_t, ORDERED, BITS)
APPLY(apply_float, float, ORDERED, NO_BITS)
APPLY(apply_double, double, ORDERED, NO_BITS)
APPLY(apply_float_complex, float complex, NO_ORDER, NO_BITS)
APPLY(apply_double_complex, double complex, NO_ORDER, NO_BITS)
APPLY(apply_int128, int128, ORDERED, BITS)
APPLY(apply_uint128, uint128, ORDERED, BITS)

enum { type_int128 = 14, type_uint128 = 15, type_count = 16, operation_count = 19 };

static const struct {
  size_t bytes;
  int real_bytes; /* of the floating-point parts, 0 for integers */
  int (*apply)(int, void*, const void*, const void*);
} types[type_count] = {
    [FI_INT8] = {1, 0, apply_int8},
    [FI_UINT8] = {1, 0, apply_uint8},
    [FI_INT16] = {2, 0, apply_int16},
    [FI_UINT16] = {2, 0, apply_uint16},
    [FI_INT32] = {4, 0, apply_int32},
    [FI_UINT32] = {4, 0, apply_uint32},
    [FI_INT64] = {8, 0, apply_int64},
    [FI_UINT64] = {8, 0, apply_uint64},
    [FI_FLOAT] = {4, 4, apply_float},
    [FI_DOUBLE] = {8, 8, apply_double},
    [FI_FLOAT_COMPLEX] = {8, 4, apply_float_complex},
    [FI_DOUBLE_COMPLEX] = {16, 8, apply_double_complex},
    [type_int128] = {16, 0, apply_int128},
    [type_uint128] = {16, 0, apply_uint128},
};

/* Random bits for integers; small whole numbers for floating point, so that sums are exact. */
static void random_value(int type, void* to) {
  unsigned char bytes[16];
  for (size_t i = 0; i < types[type].bytes; i += 4) {
    const float small = (float)(next_random() % 2000) - 1000;
    const double small_double = small;
    const uint64_t random = next_random();
    if (types[type].real_bytes == 4) {
      memcpy(bytes + i, &small, 4);
    } else if (types[type].real_bytes == 8) {
      if (i % 8 == 0) memcpy(bytes + i, &small_double, 8);
    } else {
      memcpy(bytes + i, &random, 4);
    }
  }
  memcpy(to, bytes, types[type].bytes);
}

typedef int (*valid_call)(struct fid_ep*, enum fi_datatype, enum fi_op, size_t*);
enum form { update, fetch, compare, form_count };

static ssize_t issue(enum form form, int type, int op, const void* operand, const void* compared, void* result,
                     uint64_t offset) {
  const enum fi_datatype t = (enum fi_datatype)type;
  const enum fi_op o = (enum fi_op)op;
  if (form == update) return fi_atomic(ep, operand, 1, NULL, 1, offset, region_key, t, o, result);
  if (form == fetch) return fi_fetch_atomic(ep, operand, 1, NULL, result, NULL, 1, offset, region_key, t, o, result);
  return fi_compare_atomic(ep, operand, 1, NULL, compared, NULL, result, NULL, 1, offset, region_key, t, o, result);
}

static void atomic_once(enum form form, int type, int op, int equal) {
  unsigned char before[16] __attribute__((aligned(16)));
  unsigned char operand[16] __attribute__((aligned(16)));
  unsigned char compared[16] __attribute__((aligned(16)));
  unsigned char result[16] __attribute__((aligned(16)));
  unsigned char after[16] __attribute__((aligned(16)));
  const size_t bytes = types[type].bytes;
  const uint64_t offset = 4096;
  random_value(type, before);
  random_value(type, operand);
  random_value(type, compared);
  if (equal) memcpy(compared, before, bytes);
  OK(fi_write(ep, before, bytes, NULL, 1, offset, region_key, NULL));
  wait_all(1);
  memset(result, 0, sizeof result);
  OK(issue(form, type, op, operand, compared, result, offset));
  struct fi_cq_tagged_entry entry;
  wait_entry(&entry);
  CHECK(entry.op_context == result);
  CHECK(entry.flags == (FI_ATOMIC | (form == update ? FI_WRITE : FI_READ)));
  if (form != update) CHECK(memcmp(result, before, bytes) == 0);
  OK(fi_read(ep, after, bytes, NULL, 1, offset, region_key, NULL));
  wait_all(1);
  CHECK(types[type].apply(op, before, operand, compared));
  if (memcmp(before, after, bytes) != 0) {
    fprintf(stderr, "form %d, operation %d, type %d: another result than in C\n", (int)form, op, type);
    exit(1);
  }
}

static void atomics(void) {
  const valid_call valid[form_count] = {fi_atomicvalid, fi_fetch_atomicvalid, fi_compare_atomicvalid};
  int tested = 0;
  for (int form = 0; me == 0 && form < form_count; ++form) {
    for (int type = 0; type < type_count; ++type) {
      for (int op = 0; op < operation_count; ++op) {
        size_t count = 0;
        if (valid[form](ep, (enum fi_datatype)type, (enum fi_op)op, &count) != 0) continue;
        CHECK(count >= 1);
        CHECK(types[type].bytes != 0);
        for (int i = 0; i < 4; ++i) atomic_once((enum form)form, type, op, i % 2);
        ++tested;
      }
    }
  }
  /* update: min, max on 10 types, sum and write on 12, six logical ones on 8: 92; fetch: read on 12 more: 104;
   * compare: equal on 14, unequal on 12, four orders on 10, masked on 8: 74. */
  if (me == 0) CHECK(tested == 92 + 104 + 74);
  barrier();
}

/* Both ranks add to the same counter of rank 1; every one of the values fetched is different. */
static void fetching_is_atomic(void) {
  enum { additions = 100 };
  const uint64_t one = 1;
  uint64_t last = 0;
  if (me == 1) memset(memory, 0, 8);
  barrier();
  for (int i = 0; i < additions; ++i) {
    uint64_t old = 0;
    OK(fi_fetch_atomic(ep, &one, 1, NULL, &old, NULL, 1, 0, region_key, FI_UINT64, FI_SUM, NULL));
    wait_all(1);
    CHECK(i == 0 || old > last);
    last = old;
  }
  barrier();
  if (me == 1) {
    uint64_t sum;
    memcpy(&sum, memory, sizeof sum);
    CHECK(sum == 2 * additions);
  }
  barrier();
}

/* Rank 0 has deferred a write until a message of rank 1 is counted; it then only waits for the write's own counter. */
static void a_message_sets_off_a_deferred_write(void) {
  enum { bytes = 5000, at = 4096 };
  static char data[bytes];
  memset(memory + at, 0, bytes);
  barrier();
  if (me == 0) {
    struct fid_cntr* done = open_counter();
    const uint64_t written = fi_cntr_read(memory_operations);
    for (int i = 0; i < bytes; ++i) data[i] = (char)(i * 7 + i / 256);
    struct iovec part = {data, bytes};
    struct fi_rma_iov remote = {at, bytes, region_key};
    struct fi_op_rma write = {ep, {&part, NULL, 1, 1, &remote, 1, NULL, 0}, 0};
    struct fi_deferred_work work;
    memset(&work, 0, sizeof work);
    work.threshold = fi_cntr_read(receives) + 1;
    work.triggering_cntr = receives;
    work.completion_cntr = done;
    work.op_type = FI_OP_WRITE;
    work.op.rma = &write;
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work));
    char message[8];
    struct iovec place = {message, sizeof message};
    const struct fi_msg receive = {&place, NULL, 1, 1, NULL, 0};
    OK(fi_recvmsg(ep, &receive, 0));
    OK(fi_cntr_wait(done, 1, -1));
    CHECK(memcmp(message, "go ahead", sizeof message) == 0);
    CHECK(fi_cntr_read(memory_operations) == written);
    OK(fi_close(&done->fid));
  } else {
    OK(fi_inject(ep, "go ahead", 8, 0));
  }
  barrier();
  for (int i = 0; me == 1 && i < bytes; ++i) CHECK(memory[at + i] == (char)(i * 7 + i / 256));
  barrier();
}

/* A region of its own, with a counter: rank 0 writes, reads and adds, rank 1 waits for the count. */
static void a_region_counts_what_is_done_to_it(void) {
  enum { key = 9, bytes = 4096 };
  struct fid_cntr* accesses = open_counter();
  struct fid_mr* counted;
  char* target = calloc(1, bytes);
  OK(fi_mr_reg(domain, target, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &counted, NULL));
  OK(fi_mr_bind(counted, &ep->fid, 0));
  OK(fi_mr_bind(counted, &accesses->fid, FI_REMOTE_WRITE));
  OK(fi_mr_enable(counted));
  barrier();
  if (me == 0) {
    char back[3000];
    const uint64_t one = 1;
    OK(fi_write(ep, memory, 3000, NULL, 1, 0, key, NULL));
    OK(fi_atomic(ep, &one, 1, NULL, 1, 4000, key, FI_UINT64, FI_SUM, NULL));
    wait_all(2);
    OK(fi_read(ep, back, sizeof back, NULL, 1, 0, key, NULL));
    wait_all(1);
  } else {
    uint64_t sum;
    OK(fi_cntr_wait(accesses, 3, -1));
    memcpy(&sum, target + 4000, sizeof sum);
    CHECK(sum == 1);
  }
  barrier();
  CHECK(fi_cntr_read(accesses) == (me == 0 ? 0 : 3));
  OK(fi_close(&counted->fid));
  OK(fi_close(&accesses->fid));
  free(target);
  barrier();
}

/* What each completion level promises, and what it costs: a write that is flushed takes longer. */
static double time_of(int tagged_send, uint64_t level) {
  static char bytes[8];
  struct iovec part = {bytes, sizeof bytes};
  struct fi_rma_iov place = {0, sizeof bytes, region_key};
  const struct fi_msg_rma write = {&part, NULL, 1, 1, &place, 1, NULL, 0};
  const struct fi_msg_tagged send = {&part, NULL, 1, 1, 77, 0, NULL, 0};
  const double start = MPI_Wtime();
  if (tagged_send) {
    OK(fi_tsendmsg(ep, &send, FI_COMPLETION | level));
  } else {
    OK(fi_writemsg(ep, &write, FI_COMPLETION | level));
  }
  wait_all(1);
  return MPI_Wtime() - start;
}

static void completion_levels(void) {
  struct fi_cq_tagged_entry entry;
  char place[8];
  enum { late_us = 300 };
  barrier();
  if (me == 0) {
    const double plain = time_of(0, FI_TRANSMIT_COMPLETE);
    const double delivered = time_of(0, FI_DELIVERY_COMPLETE);
    CHECK(delivered > plain + 0.1e-6);
    CHECK(time_of(0, FI_MATCH_COMPLETE) > plain + 0.1e-6);
    CHECK(time_of(1, FI_DELIVERY_COMPLETE) < late_us * 1e-6);
    CHECK(time_of(1, FI_MATCH_COMPLETE) > late_us * 1e-6);
  } else {
    for (int i = 0; i < 2; ++i) {
      CHECK(fi_cq_sread(cq, &entry, 1, NULL, 1) == -FI_EAGAIN); /* a millisecond: both are unexpected */
    }
    for (int i = 0; i < 2; ++i) {
      OK(fi_trecv(ep, place, sizeof place, NULL, 0, 77, 0, NULL));
      wait_all(1);
    }
  }
  barrier();
}

/* A small write overtakes a long read before it, unless it is fenced; what follows a fence waits behind it. */
static void a_fence_waits_for_what_is_before_it(void) {
  enum { bytes = 800000 };
  if (me == 0) {
    char* back = malloc(bytes);
    char small[8] = {0};
    struct fi_cq_tagged_entry entry;
    struct iovec part = {small, sizeof small};
    struct fi_rma_iov place = {0, sizeof small, region_key};
    for (int fenced = 0; fenced < 2; ++fenced) {
      const struct fi_msg_rma write = {&part, NULL, 1, 1, &place, 1, &place, 0};
      OK(fi_read(ep, back, bytes, NULL, 1, 0, region_key, back));
      OK(fi_writemsg(ep, &write, FI_COMPLETION | (fenced ? FI_FENCE : 0)));
      OK(fi_write(ep, small, sizeof small, NULL, 1, 8, region_key, small));
      void* const expected[2][3] = {{&place, small, back}, {back, &place, small}};
      for (int i = 0; i < 3; ++i) {
        wait_entry(&entry);
        CHECK(entry.op_context == expected[fenced][i]);
      }
    }
    free(back);
  }
  barrier();
}

int main(void) {
  start();
  completion_levels();
  a_fence_waits_for_what_is_before_it();
  a_region_counts_what_is_done_to_it();
  reads_and_writes();
  refused_accesses();
  atomics();
  fetching_is_atomic();
  a_message_sets_off_a_deferred_write();
  finish("memory");
  return 0;
}
