/* A program for libfabric, without MPI: two of it are peers on a fabric that `dryfly serve` keeps up.
 *   peer FD server|client calls|latency|endless TABLE|MAP none|unspec|fd|pollfd
 * FD is a socket between the two, over which they tell each other their addresses, out of band. Each check ends the
 * program with a sentence when it fails. */
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                        \
  do {                                                                                                          \
    if (!(condition)) {                                                                                         \
      fprintf(stderr, "%s: %s:%d: not so: %s\n", server ? "server" : "client", __FILE__, __LINE__, #condition); \
      exit(1);                                                                                                  \
    }                                                                                                           \
  } while (0)

#define OK(call)                                                                                      \
  do {                                                                                                \
    const long answer_ = (long)(call);                                                                \
    if (answer_ != 0) {                                                                               \
      fprintf(stderr, "%s: %s:%d: %s: %s\n", server ? "server" : "client", __FILE__, __LINE__, #call, \
              fi_strerror((int)-answer_));                                                            \
      exit(1);                                                                                        \
    }                                                                                                 \
  } while (0)

enum { bytes = 1 << 16, region_key = 7, rounds = 200, last_tag = 99 };

static int server, out_of_band;
static enum fi_wait_obj wait_object = FI_WAIT_NONE;
static struct fi_info* info;
static struct fid_fabric* fabric;
static struct fid_domain* domain;
static struct fid_av* av;
static struct fid_cq* cq;
static struct fid_cntr* written;
static struct fid_ep* ep;
static struct fid_mr* region;
static fi_addr_t peer;
static unsigned char *memory, *other;

/* --- waiting ---------------------------------------------------------------------------------------------------- */

/* What to give to poll(), for either kind of wait object. */
static struct pollfd descriptor(void) {
  struct pollfd polled = {.fd = -1, .events = POLLIN};
  struct fi_wait_pollfd all = {.nfds = 1, .fd = &polled};
  OK(fi_control(&cq->fid, FI_GETWAIT, wait_object == FI_WAIT_POLLFD ? (void*)&all : (void*)&polled.fd));
  CHECK(polled.fd >= 0 && polled.events == POLLIN);
  return polled;
}

static ssize_t sleep_on_descriptor(struct fi_cq_tagged_entry* entry) {
  struct fid* fids[1] = {&cq->fid};
  struct pollfd polled = descriptor();
  for (;;) {
    const ssize_t got = fi_cq_read(cq, entry, 1);
    if (got != -FI_EAGAIN) return got;
    if (fi_trywait(fabric, fids, 1) == 0) CHECK(poll(&polled, 1, 20000) == 1);
  }
}

static ssize_t next_entry(struct fi_cq_tagged_entry* entry) {
  ssize_t got = 0;
  if (wait_object == FI_WAIT_FD || wait_object == FI_WAIT_POLLFD) return sleep_on_descriptor(entry);
  do {
    got = wait_object == FI_WAIT_NONE ? fi_cq_read(cq, entry, 1) : fi_cq_sread(cq, entry, 1, NULL, -1);
  } while (got == -FI_EAGAIN);
  return got;
}

/* Nothing comes: the program may sleep, and the descriptor stays quiet. */
static void sleep_in_vain(void) {
  struct fid* fids[1] = {&cq->fid};
  struct pollfd polled = descriptor();
  struct fi_cq_tagged_entry entry;
  CHECK(fi_cq_read(cq, &entry, 1) == -FI_EAGAIN);
  OK(fi_trywait(fabric, fids, 1));
  CHECK(poll(&polled, 1, 30) == 0);
}

/* The next completion, which has to be that of `context`. */
static struct fi_cq_tagged_entry expect(void* context) {
  struct fi_cq_tagged_entry entry;
  const ssize_t got = next_entry(&entry);
  if (got == -FI_EAVAIL) {
    struct fi_cq_err_entry error = {0};
    fi_cq_readerr(cq, &error, 0);
    fprintf(stderr, "%s: error completion: %s\n", server ? "server" : "client", fi_strerror(error.err));
    exit(1);
  }
  CHECK(got == 1);
  CHECK(entry.op_context == context);
  return entry;
}

static void expect_nothing_found(void) {
  struct fi_cq_tagged_entry entry;
  struct fi_cq_err_entry error = {0};
  CHECK(next_entry(&entry) == -FI_EAVAIL);
  CHECK(fi_cq_readerr(cq, &error, 0) == 1);
  CHECK(error.err == FI_ENOMSG);
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

static void open_all(enum fi_av_type av_type) {
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_SOURCE;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
  hints->domain_attr->av_type = av_type;
  hints->fabric_attr->prov_name = strdup("cxi");
  OK(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info));
  fi_freeinfo(hints);
  CHECK(info->src_addrlen != 0 && info->src_addr != NULL);
  OK(fi_fabric(info->fabric_attr, &fabric, NULL));
  OK(fi_domain(fabric, info, &domain, NULL));
  struct fi_av_attr av_attributes = {.type = av_type};
  struct fi_cq_attr cq_attributes = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait_object};
  struct fi_cntr_attr counter_attributes = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
  OK(fi_av_open(domain, &av_attributes, &av, NULL));
  OK(fi_cq_open(domain, &cq_attributes, &cq, NULL));
  OK(fi_cntr_open(domain, &counter_attributes, &written, NULL));
  OK(fi_endpoint(domain, info, &ep, NULL));
  OK(fi_ep_bind(ep, &av->fid, 0));
  OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
  OK(fi_ep_bind(ep, &written->fid, FI_WRITE));
  OK(fi_enable(ep));
  memory = calloc(1, bytes);
  other = calloc(1, bytes);
  OK(fi_mr_reg(domain, memory, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, region_key, 0, &region, NULL));
  OK(fi_mr_bind(region, &ep->fid, 0));
  OK(fi_mr_enable(region));
}

static void exchange_addresses(void) {
  unsigned char own[64], theirs[64];
  size_t length = sizeof own;
  OK(fi_getname(&ep->fid, own, &length));
  CHECK(write(out_of_band, own, length) == (ssize_t)length);
  CHECK(read(out_of_band, theirs, length) == (ssize_t)length);
  CHECK(fi_av_insert(av, theirs, 1, &peer, 0, NULL) == 1);
}

static void out_of_band_barrier(void) {
  char token = 1;
  CHECK(write(out_of_band, &token, 1) == 1);
  CHECK(read(out_of_band, &token, 1) == 1);
}

static void close_all(void) {
  OK(fi_close(&region->fid));
  OK(fi_close(&ep->fid));
  OK(fi_close(&written->fid));
  OK(fi_close(&cq->fid));
  OK(fi_close(&av->fid));
  OK(fi_close(&domain->fid));
  OK(fi_close(&fabric->fid));
  fi_freeinfo(info);
  free(memory);
  free(other);
}

/* --- the calls -------------------------------------------------------------------------------------------------- */

static void fill(unsigned seed) {
  for (unsigned i = 0; i < bytes; ++i) memory[i] = (unsigned char)(i * 7 + seed);
}

static void check_other(unsigned seed, unsigned length) {
  for (unsigned i = 0; i < length; ++i) CHECK(other[i] == (unsigned char)(i * 7 + seed));
}

/* Messages of every protocol, plain and tagged, with remote data; injects complete without an entry. */
static void send_messages(void) {
  static const size_t sizes[] = {0, 8, 192, 193, 4096, bytes};
  int mark = 0;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    fill(i);
    OK(fi_tsenddata(ep, memory, sizes[i], NULL, 1000 + i, peer, i, &mark));
    expect(&mark);
    struct iovec part = {memory, sizes[i]};
    struct fi_msg message = {.msg_iov = &part, .iov_count = 1, .addr = peer, .context = &mark};
    OK(fi_sendmsg(ep, &message, FI_COMPLETION | FI_MORE));
    expect(&mark);
  }
  fill(77);
  OK(fi_tinject(ep, memory, 100, peer, last_tag));
}

static void receive_messages(void) {
  static const size_t sizes[] = {0, 8, 192, 193, 4096, bytes};
  int mark = 0;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    memset(other, 0, bytes);
    OK(fi_trecv(ep, other, bytes, NULL, FI_ADDR_UNSPEC, i, 0, &mark));
    const struct fi_cq_tagged_entry entry = expect(&mark);
    CHECK((entry.flags & FI_REMOTE_CQ_DATA) != 0 && entry.data == 1000 + i);
    CHECK(entry.len == sizes[i] && entry.tag == i);
    check_other(i, (unsigned)sizes[i]);
    memset(other, 0, bytes);
    OK(fi_recv(ep, other, bytes, NULL, peer, &mark));
    CHECK(expect(&mark).len == sizes[i]);
    check_other(i, (unsigned)sizes[i]);
  }
  OK(fi_trecv(ep, other, bytes, NULL, FI_ADDR_UNSPEC, last_tag, 0, &mark));
  CHECK(expect(&mark).len == 100);
  check_other(77, 100);
}

static ssize_t look(uint64_t tag, uint64_t flags, void* context) {
  struct fi_msg_tagged message = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};
  return fi_trecvmsg(ep, &message, flags);
}

/* FI_PEEK, FI_CLAIM and FI_DISCARD on messages that nobody has asked for yet. */
static void peek_at_messages(void) {
  struct fi_context contexts[3];
  OK(look(500, FI_PEEK, &contexts[0]));
  expect_nothing_found();
  out_of_band_barrier();
  if (server) {
    int mark = 0;
    for (uint64_t tag = 501; tag <= 503; ++tag) {
      fill((unsigned)tag);
      OK(fi_tsend(ep, memory, 300, NULL, peer, tag, &mark));
      expect(&mark);
    }
    out_of_band_barrier();
    return;
  }
  out_of_band_barrier();
  OK(look(501, FI_PEEK, &contexts[0]));
  CHECK(expect(&contexts[0]).len == 300);
  OK(look(501, FI_PEEK | FI_CLAIM, &contexts[0]));
  CHECK(expect(&contexts[0]).tag == 501);
  OK(look(501, FI_PEEK, &contexts[1]));
  expect_nothing_found(); /* it is claimed */
  struct iovec part = {other, bytes};
  struct fi_msg_tagged message = {
      .msg_iov = &part, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 501, .context = &contexts[0]};
  OK(fi_trecvmsg(ep, &message, FI_CLAIM));
  CHECK(expect(&contexts[0]).len == 300);
  check_other((unsigned char)501, 300);
  OK(look(502, FI_PEEK | FI_DISCARD, &contexts[1]));
  expect(&contexts[1]);
  OK(look(502, FI_PEEK, &contexts[1]));
  expect_nothing_found();
  OK(look(503, FI_PEEK | FI_CLAIM, &contexts[2]));
  expect(&contexts[2]);
  OK(look(503, FI_CLAIM | FI_DISCARD, &contexts[2]));
  expect(&contexts[2]);
  OK(look(503, FI_PEEK, &contexts[1]));
  expect_nothing_found();
}

static void touch_memory(void) {
  int mark = 0;
  uint64_t one = 1, before = 99;
  if (!server) {
    memset(other, 0, bytes);
    for (unsigned i = 0; i < bytes; ++i) other[i] = (unsigned char)(i * 7 + 3);
    OK(fi_write(ep, other, bytes, NULL, peer, 0, region_key, &mark));
    expect(&mark);
    OK(fi_cntr_wait(written, 1, 1000));
    memset(other, 0, bytes);
    OK(fi_read(ep, other, bytes, NULL, peer, 0, region_key, &mark));
    expect(&mark);
    check_other(3, bytes);
    OK(fi_inject_write(ep, "12345678", 8, peer, 8, region_key));
    OK(fi_fetch_atomic(ep, &one, 1, NULL, &before, NULL, peer, 16, region_key, FI_UINT64, FI_SUM, &mark));
    expect(&mark);
    uint64_t there = 0;
    for (unsigned i = 0; i < 8; ++i) there |= (uint64_t)(unsigned char)((16 + i) * 7 + 3) << (8 * i);
    CHECK(before == there);
    OK(fi_write(ep, other, 8, NULL, peer, bytes - 4, region_key, &mark)); /* beyond the region */
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    CHECK(next_entry(&entry) == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1 && error.err != 0);
    CHECK(fi_cntr_wait(written, 1000, 1) == -FI_ETIMEDOUT || fi_cntr_readerr(written) == 1);
    out_of_band_barrier();
    return;
  }
  out_of_band_barrier(); /* outside the provider, and virtual time goes on without it */
  CHECK(memory[0] == 3 && memcmp(memory + 8, "12345678", 8) == 0);
}

/* --- what a test asks for --------------------------------------------------------------------------------------- */

static void make_calls(void) {
  if (wait_object == FI_WAIT_FD || wait_object == FI_WAIT_POLLFD) sleep_in_vain();
  out_of_band_barrier();
  server ? send_messages() : receive_messages();
  server ? receive_messages() : send_messages();
  out_of_band_barrier();
  peek_at_messages();
  out_of_band_barrier();
  if (server) memset(memory, 0, bytes);
  out_of_band_barrier();
  touch_memory();
  out_of_band_barrier();
}

static int by_size(const void* a, const void* b) {
  const long left = *(const long*)a, right = *(const long*)b;
  return (left > right) - (left < right);
}

/* The median of half the time of a round trip of 8 bytes, in nanoseconds of this program's clock. */
static void measure_latency(void) {
  long taken[rounds];
  int mark = 0;
  for (int round = 0; round < rounds; ++round) {
    struct timespec begin, end;
    OK(fi_trecv(ep, other, 8, NULL, peer, 1, 0, &mark));
    if (round == 0) out_of_band_barrier();
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!server) OK(fi_tinject(ep, memory, 8, peer, 1));
    expect(&mark);
    if (server) OK(fi_tinject(ep, memory, 8, peer, 1));
    clock_gettime(CLOCK_MONOTONIC, &end);
    taken[round] = (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec;
  }
  qsort(taken, rounds, sizeof *taken, by_size);
  if (!server) printf("%ld\n", taken[rounds / 2] / 2);
}

/* Round trips without end, until somebody ends it. */
static void go_on_for_ever(void) {
  int mark = 0;
  for (long round = 0;; ++round) {
    OK(fi_trecv(ep, other, 8, NULL, peer, 1, 0, &mark));
    if (round == 0) out_of_band_barrier();
    if (!server) OK(fi_tinject(ep, memory, 8, peer, 1));
    expect(&mark);
    if (server) OK(fi_tinject(ep, memory, 8, peer, 1));
    if (round != 10) continue;
    printf("under way\n");
    fflush(stdout);
  }
}

int main(int count, char** words) {
  if (count != 6) return 2;
  out_of_band = atoi(words[1]);
  server = strcmp(words[2], "server") == 0;
  if (strcmp(words[5], "unspec") == 0) wait_object = FI_WAIT_UNSPEC;
  if (strcmp(words[5], "fd") == 0) wait_object = FI_WAIT_FD;
  if (strcmp(words[5], "pollfd") == 0) wait_object = FI_WAIT_POLLFD;
  open_all(strcmp(words[4], "MAP") == 0 ? FI_AV_MAP : FI_AV_TABLE);
  exchange_addresses();
  if (strcmp(words[3], "calls") == 0) make_calls();
  if (strcmp(words[3], "latency") == 0) measure_latency();
  if (strcmp(words[3], "endless") == 0) go_on_for_ever();
  close_all();
  return 0;
}
