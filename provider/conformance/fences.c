/* Two ranks: FI_FENCE. What is fenced starts when all that its end-point has sent out before is complete, and what
 * comes behind waits with it; neither receives nor other end-points hold it up. */
#include "rank.h"

enum { long_bytes = 800000, tag = 40, last_tag = 41 };

static char* back;       /* what a long read brings */
static char place_of[4]; /* contexts of what completes, in order of issue */

static struct fi_rma_iov remote(uint64_t offset, size_t length) {
  return (struct fi_rma_iov){offset, length, region_key};
}

/* The next completions are these, in this order. */
static void expect_order(int first, int second, int third) {
  const int order[] = {first, second, third};
  for (int i = 0; i < 3; ++i) {
    struct fi_cq_tagged_entry entry;
    if (order[i] < 0) continue;
    wait_entry(&entry);
    CHECK(entry.op_context == &place_of[order[i]]);
  }
}

static void start_long_read(struct fid_ep* from) {
  OK(fi_read(from, back, long_bytes, NULL, 1, 0, region_key, &place_of[0]));
}

/* Issues one operation of eight bytes to rank `target`, as the `index`th. */
enum what { a_send, a_tagged_send, a_write, a_read, an_atomic, a_fetching_atomic, a_comparing_atomic, what_count };
static uint64_t operand = 5, compared = 6, result;

static ssize_t issue_atomic(enum what what, int index, fi_addr_t target, uint64_t flags) {
  static struct fi_ioc operands, compares, results;
  static struct fi_rma_ioc at;
  operands = (struct fi_ioc){&operand, 1};
  compares = (struct fi_ioc){&compared, 1};
  results = (struct fi_ioc){&result, 1};
  at = (struct fi_rma_ioc){long_bytes + 8, 1, region_key};
  struct fi_msg_atomic message = {&operands, NULL, 1, target, &at, 1, FI_UINT64, FI_SUM, &place_of[index], 0};
  if (what == an_atomic) return fi_atomicmsg(ep, &message, flags);
  if (what == a_fetching_atomic) return fi_fetch_atomicmsg(ep, &message, &results, NULL, 1, flags);
  message.op = FI_CSWAP;
  return fi_compare_atomicmsg(ep, &message, &compares, NULL, 1, &results, NULL, 1, flags);
}

static ssize_t issue(enum what what, int index, fi_addr_t target, uint64_t flags) {
  static struct iovec part;
  static struct fi_rma_iov at;
  part = (struct iovec){&operand, sizeof operand};
  at = remote(long_bytes, sizeof operand);
  const struct fi_msg send = {&part, NULL, 1, target, &place_of[index], 0};
  const struct fi_msg_tagged tagged = {&part, NULL, 1, target, tag, 0, &place_of[index], 0};
  const struct fi_msg_rma access = {&part, NULL, 1, target, &at, 1, &place_of[index], 0};
  flags |= FI_COMPLETION;
  switch (what) {
    case a_send:
      return fi_sendmsg(ep, &send, flags);
    case a_tagged_send:
      return fi_tsendmsg(ep, &tagged, flags);
    case a_write:
      return fi_writemsg(ep, &access, flags);
    case a_read:
      return fi_readmsg(ep, &access, flags);
    default:
      return issue_atomic(what, index, target, flags);
  }
}

/* Behind a long read each operation completes first, unless it is fenced. */
static void every_operation_can_be_fenced(void) {
  for (int what = 0; what < what_count; ++what) {
    char bytes[8];
    if (me == 1 && what <= a_tagged_send) {
      for (int i = 0; i < 2; ++i) {
        OK(what == a_send ? fi_recv(ep, bytes, sizeof bytes, NULL, 0, NULL)
                          : fi_trecv(ep, bytes, sizeof bytes, NULL, 0, tag, 0, NULL));
      }
    }
    barrier();
    for (int fenced = 0; me == 0 && fenced < 2; ++fenced) {
      start_long_read(ep);
      OK(issue((enum what)what, 1, 1, fenced ? FI_FENCE : 0));
      fenced ? expect_order(0, 1, -1) : expect_order(1, 0, -1);
    }
    if (me == 1 && what <= a_tagged_send) wait_all(2);
    barrier();
  }
}

/* A long message is complete when the other has taken all of it; a fenced short one comes after that, so it finds the
 * receive that was posted last, at an instant that is later. */
static void a_fence_waits_for_a_long_message(void) {
  if (me == 0) {
    memset(back, 7, long_bytes);
    OK(fi_tsend(ep, back, long_bytes, NULL, 1, tag, &place_of[0]));
    OK(issue(a_write, 1, 1, FI_FENCE));
    expect_order(0, 1, -1);
  } else {
    struct fi_cq_tagged_entry entry;
    const double begin = MPI_Wtime();
    CHECK(fi_cq_sread(cq, &entry, 1, NULL, 1) == -FI_EAGAIN); /* a millisecond in which it is unexpected */
    memset(memory + long_bytes, 0, 8);
    OK(fi_trecv(ep, back, long_bytes, NULL, 0, tag, 0, NULL));
    wait_all(1);
    CHECK(MPI_Wtime() - begin > 1e-3);
    CHECK(memory[long_bytes] == 0); /* the write waits for the message to be acknowledged as taken */
  }
  barrier();
  if (me == 1) CHECK(memory[long_bytes] == 5);
  barrier();
}

/* A receive is nothing that was sent out: a fence does not wait for the one that only a later message matches. */
static void a_fence_does_not_wait_for_receives(void) {
  char bytes[8];
  if (me == 0) {
    OK(fi_trecv(ep, bytes, sizeof bytes, NULL, 1, last_tag, 0, &place_of[0]));
    OK(issue(a_tagged_send, 1, 1, FI_FENCE));
    expect_order(1, 0, -1);
  } else {
    OK(fi_trecv(ep, bytes, sizeof bytes, NULL, 0, tag, 0, NULL));
    wait_all(1);
    OK(fi_tinject(ep, "answer", 7, 0, last_tag));
  }
  barrier();
}

/* Also what nobody hears of counts: a value that was injected before is there when the fenced read looks. */
static void a_fence_waits_for_injects(void) {
  for (uint64_t value = 1; me == 0 && value <= 3; ++value) {
    uint64_t got = 0;
    struct iovec part = {&got, sizeof got};
    struct fi_rma_iov at = remote(64, sizeof got);
    const struct fi_msg_rma read = {&part, NULL, 1, 1, &at, 1, &place_of[1], 0};
    OK(fi_inject_write(ep, &value, sizeof value, 1, 64, region_key));
    OK(fi_readmsg(ep, &read, FI_COMPLETION | FI_FENCE));
    expect_order(1, -1, -1);
    CHECK(got == value);
  }
  barrier();
}

/* Each of several fences waits for the one before, and what comes behind for the last. */
static void fences_follow_each_other(void) {
  if (me == 0) {
    start_long_read(ep);
    OK(issue(a_write, 1, 1, FI_FENCE));
    OK(issue(an_atomic, 2, 1, FI_FENCE));
    OK(issue(a_read, 3, 1, 0));
    expect_order(0, 1, 2);
    expect_order(3, -1, -1);
  }
  barrier();
}

/* A fence holds whomever it is for: here the rank's own memory, which is nearer than what it waits for. */
static void a_fence_holds_for_every_target(void) {
  for (int fenced = 0; me == 0 && fenced < 2; ++fenced) {
    start_long_read(ep);
    OK(issue(a_write, 1, 0, fenced ? FI_FENCE : 0));
    fenced ? expect_order(0, 1, -1) : expect_order(1, 0, -1);
  }
  barrier();
}

/* An operation that fails is over too. */
static void a_fence_does_not_wait_for_ever_for_what_failed(void) {
  if (me == 0) {
    struct fi_cq_err_entry error;
    OK(fi_write(ep, &operand, 8, NULL, 1, 0, region_key + 1, &place_of[0]));
    OK(issue(a_write, 1, 1, FI_FENCE));
    wait_error(&error);
    CHECK(error.op_context == &place_of[0]);
    CHECK(error.err == FI_EKEYREJECTED);
    expect_order(1, -1, -1);
  }
  barrier();
}

/* A second end-point has its own queue of commands: what waits at one does not wait for the other. */
static void end_points_do_not_wait_for_each_other(void) {
  struct fid_ep* second;
  OK(fi_endpoint(domain, info, &second, NULL));
  OK(fi_ep_bind(second, &av->fid, 0));
  OK(fi_ep_bind(second, &cq->fid, FI_TRANSMIT | FI_RECV));
  OK(fi_enable(second));
  if (me == 0) {
    start_long_read(second);
    OK(issue(a_write, 1, 1, FI_FENCE)); /* of the first end-point, which has nothing under way */
    expect_order(1, 0, -1);
    start_long_read(ep);
    OK(issue(a_write, 1, 1, FI_FENCE)); /* waits at the first */
    OK(fi_write(second, &operand, 8, NULL, 1, 128, region_key, &place_of[2]));
    expect_order(2, 0, 1);
  }
  barrier();
  OK(fi_close(&second->fid));
}

int main(void) {
  start();
  back = malloc(long_bytes);
  every_operation_can_be_fenced();
  a_fence_waits_for_a_long_message();
  a_fence_does_not_wait_for_receives();
  a_fence_waits_for_injects();
  fences_follow_each_other();
  a_fence_holds_for_every_target();
  a_fence_does_not_wait_for_ever_for_what_failed();
  end_points_do_not_wait_for_each_other();
  free(back);
  finish("fences");
  return 0;
}
