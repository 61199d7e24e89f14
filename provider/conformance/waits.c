/* Two ranks: the calls that block. They wait in virtual time, for no longer than they are told, and come back when
 * there is something. */
#include "rank.h"

enum { ms = 1, late_ms = 3, tag = 50 };

static const double us = 1e-6;

/* A call that waits in vain takes its time-out, and a few calls' cost more. */
static void check_waited(double begin, int timeout_ms) {
  const double waited = MPI_Wtime() - begin;
  CHECK(waited >= timeout_ms * 1e-3);
  CHECK(waited < timeout_ms * 1e-3 + 10 * us);
}

static void a_time_out_is_kept(void) {
  struct fi_cq_tagged_entry entry;
  struct fi_eq_attr attributes;
  struct fid_eq* events;
  uint32_t event;
  memset(&attributes, 0, sizeof attributes);
  attributes.wait_obj = FI_WAIT_YIELD;
  OK(fi_eq_open(fabric, &attributes, &events, NULL));
  const uint64_t counted = fi_cntr_read(receives);
  double begin = MPI_Wtime();
  CHECK(fi_cq_sread(cq, &entry, 1, NULL, 5 * ms) == -FI_EAGAIN);
  check_waited(begin, 5);
  begin = MPI_Wtime();
  CHECK(fi_cntr_wait(receives, counted + 1, 2 * ms) == -FI_ETIMEDOUT);
  check_waited(begin, 2);
  begin = MPI_Wtime();
  CHECK(fi_eq_sread(events, &event, &entry, sizeof entry, 1 * ms, 0) == -FI_EAGAIN);
  check_waited(begin, 1);
  begin = MPI_Wtime();
  CHECK(fi_cq_sread(cq, &entry, 1, NULL, 0) == -FI_EAGAIN);
  check_waited(begin, 0);
  OK(fi_close(&events->fid));
  barrier();
}

/* Rank 1 lets some time go by and sends; rank 0, which would wait for ever or for ten times as long, comes back then.
 */
static void a_message_ends_the_wait(int timeout_ms, int by_counter) {
  struct fi_cq_tagged_entry entry;
  char byte = 0;
  barrier();
  if (me == 0) {
    const uint64_t counted = fi_cntr_read(receives);
    const double begin = MPI_Wtime();
    OK(fi_trecv(ep, &byte, 1, NULL, 1, tag, 0, &byte));
    if (by_counter) OK(fi_cntr_wait(receives, counted + 1, timeout_ms));
    CHECK(fi_cq_sread(cq, &entry, 1, NULL, timeout_ms) == 1);
    const double waited = MPI_Wtime() - begin;
    CHECK(entry.op_context == &byte);
    CHECK(byte == 'm');
    CHECK(waited > late_ms * 1e-3 - 10 * us);
    CHECK(waited < late_ms * 1e-3 + 20 * us);
  } else {
    CHECK(fi_cq_sread(cq, &entry, 1, NULL, late_ms) == -FI_EAGAIN);
    OK(fi_tinject(ep, "m", 1, 0, tag));
  }
  barrier();
}

/* What is there already is taken at once, one entry a call, also with a time-out of 0. */
static void what_is_there_is_taken_at_once(void) {
  struct fi_cq_tagged_entry entries[4];
  char bytes[3];
  const uint64_t before = fi_cntr_read(receives);
  if (me == 0) {
    for (int i = 0; i < 3; ++i) OK(fi_trecv(ep, &bytes[i], 1, NULL, 1, tag, 0, &bytes[i]));
  }
  barrier();
  if (me == 0) {
    OK(fi_cntr_wait(receives, before + 1 + 3, -1)); /* with the one of the barrier */
    CHECK(fi_cq_sread(cq, entries, 4, NULL, -1) == 1);
    const uint64_t counted = fi_cntr_read(receives);
    const double begin = MPI_Wtime();
    CHECK(fi_cq_sread(cq, entries, 4, NULL, -1) == 1);
    CHECK(fi_cq_sread(cq, entries, 4, NULL, 0) == 1);
    CHECK(entries[0].op_context == &bytes[2]);
    CHECK(MPI_Wtime() - begin < 10 * us);
    OK(fi_cntr_wait(receives, counted, 0));
  } else {
    for (int i = 0; i < 3; ++i) OK(fi_tinject(ep, "m", 1, 0, tag));
  }
  barrier();
}

/* An operation that fails ends the wait of its counter, whatever the threshold; the queue has the reason. */
static void a_failure_ends_the_wait(void) {
  struct fi_cq_err_entry error;
  struct fi_cq_tagged_entry entry;
  char byte = 0;
  if (me == 0) {
    const uint64_t counted = fi_cntr_read(memory_operations);
    const uint64_t failed = fi_cntr_readerr(memory_operations);
    OK(fi_write(ep, &byte, 1, NULL, 1, 0, region_key + 1, &byte));
    CHECK(fi_cntr_wait(memory_operations, counted + 1, -1) == -FI_EAVAIL);
    CHECK(fi_cntr_readerr(memory_operations) == failed + 1);
    CHECK(fi_cq_sread(cq, &entry, 1, NULL, -1) == -FI_EAVAIL);
    memset(&error, 0, sizeof error);
    CHECK(fi_cq_readerr(cq, &error, 0) == 1);
    CHECK(error.op_context == &byte && error.err == FI_EKEYREJECTED);
    /* The failures of before do not end the next wait. */
    OK(fi_write(ep, &byte, 1, NULL, 1, 0, region_key, &byte));
    OK(fi_cntr_wait(memory_operations, counted + 1, -1));
    wait_all(1);
  }
  barrier();
}

/* In a run nothing can be given to poll(). */
static void there_is_no_descriptor(void) {
  struct fi_cq_attr attributes;
  struct fid* fids[1] = {&cq->fid};
  struct fid_cq* refused;
  int descriptor;
  memset(&attributes, 0, sizeof attributes);
  attributes.wait_obj = FI_WAIT_FD;
  CHECK(fi_cq_open(domain, &attributes, &refused, NULL) == -FI_ENOSYS);
  attributes.wait_obj = FI_WAIT_POLLFD;
  CHECK(fi_cq_open(domain, &attributes, &refused, NULL) == -FI_ENOSYS);
  CHECK(fi_control(&cq->fid, FI_GETWAIT, &descriptor) == -FI_ENODATA);
  CHECK(fi_trywait(fabric, fids, 1) == -FI_EINVAL);
}

int main(void) {
  start();
  a_time_out_is_kept();
  for (int by_counter = 0; by_counter < 2; ++by_counter) {
    a_message_ends_the_wait(-1, by_counter);
    a_message_ends_the_wait(10 * late_ms, by_counter);
  }
  what_is_there_is_taken_at_once();
  a_failure_ends_the_wait();
  there_is_no_descriptor();
  finish("waits");
  return 0;
}
