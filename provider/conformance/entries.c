/* Two ranks: more triggered writes than a process has entries, of which those that wait for an entry are due. They do
 * not go until others have left their entries, and a loop that asks for their counter ends by the clock. With the
 * argument `stuck` rank 0 waits for ever for what cannot go. */
#include "rank.h"

enum { key = 9, entries = 504, beyond = 40 };

static struct fid_cntr *late, *early, *late_done, *early_done;
static struct fi_deferred_work work[entries + beyond];
static char cell[8];

static void queue_write(int n, struct fid_cntr* trigger, struct fid_cntr* done) {
  static struct iovec part = {cell, sizeof cell};
  static struct fi_rma_iov remote = {0, sizeof cell, key};
  static struct fi_op_rma write;
  write = (struct fi_op_rma){ep, {&part, NULL, 1, (fi_addr_t)other, &remote, 1, NULL, 0}, FI_DELIVERY_COMPLETE};
  work[n].threshold = 1;
  work[n].triggering_cntr = trigger;
  work[n].completion_cntr = done;
  work[n].op_type = FI_OP_WRITE;
  work[n].op.rma = &write;
  OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work[n]));
}

/* The counter after at most so many seconds. */
static uint64_t count_within(struct fid_cntr* counter, uint64_t wanted, double seconds) {
  const double deadline = MPI_Wtime() + seconds;
  while (MPI_Wtime() < deadline && fi_cntr_read(counter) < wanted) continue;
  return fi_cntr_read(counter);
}

int main(int argc, char** argv) {
  start();
  char* target = calloc(1, sizeof cell);
  struct fid_mr* region_of_writes;
  OK(fi_mr_reg(domain, target, sizeof cell, FI_REMOTE_WRITE, 0, key, 0, &region_of_writes, NULL));
  OK(fi_mr_bind(region_of_writes, &ep->fid, 0));
  OK(fi_mr_enable(region_of_writes));
  late = open_counter();
  early = open_counter();
  late_done = open_counter();
  early_done = open_counter();
  barrier();
  if (me == 0) {
    for (int n = 0; n < entries; ++n) queue_write(n, late, late_done);
    for (int n = entries; n < entries + beyond; ++n) queue_write(n, early, early_done);
    OK(fi_cntr_add(early, 1));
    if (argc > 1 && strcmp(argv[1], "stuck") == 0) fi_cntr_wait(early_done, beyond, -1);
    CHECK(count_within(early_done, beyond, 1e-3) == 0);
    OK(fi_cntr_add(late, 1));
    CHECK(count_within(early_done, beyond, 1e-2) == beyond);
    CHECK(count_within(late_done, entries, 1e-2) == entries);
  }
  barrier();
  OK(fi_close(&region_of_writes->fid));
  OK(fi_close(&late->fid));
  OK(fi_close(&early->fid));
  OK(fi_close(&late_done->fid));
  OK(fi_close(&early_done->fid));
  free(target);
  finish("entries");
  return 0;
}
