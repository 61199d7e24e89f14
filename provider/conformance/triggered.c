/* Two ranks: triggered writes that set off one another, back and forth, while both ranks sleep. */
#include <time.h>

#include "rank.h"

enum { key = 9, rounds = 20, slots = 2 };

static struct fid_cntr *arrived, *done;
static uint64_t* cells;
static struct fid_mr* cells_region;

/* Of the value that is in `from` then, into the other's `to`, when so many have arrived here. */
static void queue_write(int from, int to, uint64_t threshold, struct fi_deferred_work* work) {
  static struct iovec parts[2 * rounds];
  static struct fi_rma_iov remotes[2 * rounds];
  static struct fi_op_rma writes[2 * rounds];
  static int queued;
  const int n = queued++ % (2 * rounds);
  parts[n] = (struct iovec){&cells[from], sizeof *cells};
  remotes[n] = (struct fi_rma_iov){(uint64_t)to * sizeof *cells, sizeof *cells, key};
  writes[n] =
      (struct fi_op_rma){ep, {&parts[n], NULL, 1, (fi_addr_t)other, &remotes[n], 1, NULL, 0}, FI_DELIVERY_COMPLETE};
  memset(work, 0, sizeof *work);
  work->threshold = threshold;
  work->triggering_cntr = arrived;
  work->completion_cntr = done;
  work->op_type = FI_OP_WRITE;
  work->op.rma = &writes[n];
  OK(fi_control(&domain->fid, FI_QUEUE_WORK, work));
}

static void sleep_ms(long ms) {
  const struct timespec time = {0, ms * 1000000};
  nanosleep(&time, NULL);
}

/* Rank 0's first write goes at once; each that arrives sets off the answer. The value is rank 0's, and each passes on
 * what it has got. */
static void go_round_while_all_sleep(void) {
  static struct fi_deferred_work work[rounds];
  cells[0] = me == 0 ? 42 : 0;
  cells[1] = 0;
  barrier();
  for (int n = rounds; n > 0; --n) queue_write(0, me == 0 ? 0 : 1, (uint64_t)(me == 0 ? n - 1 : n), &work[n - 1]);
  const double begin = MPI_Wtime();
  sleep_ms(1);
  CHECK(fi_cntr_read(arrived) == rounds);
  CHECK(fi_cntr_read(done) == rounds);
  CHECK(cells[me == 0 ? 1 : 0] == 42);
  CHECK(MPI_Wtime() - begin < 1.1e-3);
  barrier();
}

/* The counter that a write has moved moves another one, which sets off a message. */
static void a_chain_of_counters(void) {
  struct fid_cntr* second = open_counter();
  static struct fi_deferred_work add, message;
  static struct fi_op_cntr more;
  static struct fi_op_tagged send;
  static struct iovec part;
  static char text[6000];
  struct fi_cq_tagged_entry entry;
  memset(text, 'x', sizeof text);
  barrier();
  if (me == 0) {
    more = (struct fi_op_cntr){second, 5};
    memset(&add, 0, sizeof add);
    add.threshold = fi_cntr_read(arrived) + 1;
    add.triggering_cntr = arrived;
    add.op_type = FI_OP_CNTR_ADD;
    add.op.cntr = &more;
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &add));
    part = (struct iovec){text, sizeof text};
    send = (struct fi_op_tagged){ep, {&part, NULL, 1, (fi_addr_t)other, 77, 0, NULL, 0}, 0};
    memset(&message, 0, sizeof message);
    message.threshold = 5;
    message.triggering_cntr = second;
    message.completion_cntr = done;
    message.op_type = FI_OP_TSEND;
    message.op.tagged = &send;
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &message));
    memset(text, 'y', sizeof text); /* the NIC reads it when it sends */
    sleep_ms(1);
    CHECK(fi_cntr_read(second) == 5);
  } else {
    static char received[sizeof text];
    OK(fi_trecv(ep, received, sizeof received, NULL, (fi_addr_t)other, 77, 0, received));
    OK(fi_inject_write(ep, &cells[0], sizeof *cells, (fi_addr_t)other, 0, key));
    for (wait_entry(&entry); entry.op_context != received; wait_entry(&entry)) {
    }
    for (size_t at = 0; at < sizeof received; ++at) CHECK(received[at] == 'y');
  }
  barrier();
  if (me == 0) CHECK(fi_cntr_read(done) == rounds + 1);
  OK(fi_close(&second->fid));
}

static void cancelled_work_is_never_done(void) {
  struct fi_deferred_work work;
  const uint64_t before = fi_cntr_read(done);
  barrier();
  cells[0] = 7;
  queue_write(0, 1, fi_cntr_read(arrived) + 100, &work);
  OK(fi_control(&domain->fid, FI_CANCEL_WORK, &work));
  OK(fi_cntr_add(arrived, 100));
  sleep_ms(1);
  CHECK(fi_cntr_read(done) == before);
  CHECK(cells[1] != 7);
  barrier();
}

int main(void) {
  start();
  arrived = open_counter();
  done = open_counter();
  cells = calloc(slots, sizeof *cells);
  OK(fi_mr_reg(domain, cells, slots * sizeof *cells, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &cells_region, NULL));
  OK(fi_mr_bind(cells_region, &ep->fid, 0));
  OK(fi_mr_bind(cells_region, &arrived->fid, FI_REMOTE_WRITE));
  OK(fi_mr_enable(cells_region));
  barrier();
  go_round_while_all_sleep();
  a_chain_of_counters();
  cancelled_work_is_never_done();
  OK(fi_close(&cells_region->fid));
  OK(fi_close(&done->fid));
  OK(fi_close(&arrived->fid));
  finish("triggered");
  return 0;
}
