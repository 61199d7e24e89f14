/* One rank of a conformance program: an end-point with a queue and counters on the provider "cxi", beside MPI, which
 * only starts and ends the ranks. The addresses are computable (rank times 128 plus end-point; MPI's own is end-point
 * 0), and there is a barrier over the provider itself. Run with two ranks, see run.sh. */
#ifndef DRYFLY_CONFORMANCE_RANK_H
#define DRYFLY_CONFORMANCE_RANK_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include "end_point.h"

enum { region_bytes = 1 << 20, region_key = 5, barrier_tag = 0x777 };

static int other;
static int region_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED; /* what start() asks for */
static struct fid_cntr *sends, *receives, *memory_operations;
static struct fid_mr* region;
static char* memory;

/* Waits for `count` completions of sends or the like, which a barrier may have met before. */
static int met_in_barrier;
static inline void wait_all(int count) {
  struct fi_cq_tagged_entry entry;
  for (; count > 0; --count) {
    if (met_in_barrier > 0) {
      --met_in_barrier;
    } else {
      wait_entry(&entry);
    }
  }
}

static void barrier(void) {
  char token = 0;
  struct fi_cq_tagged_entry entry;
  OK(fi_trecv(ep, &token, 1, NULL, (fi_addr_t)other, barrier_tag, 0, &token));
  OK(fi_tinject(ep, "b", 1, (fi_addr_t)other, barrier_tag));
  for (wait_entry(&entry); entry.op_context != &token; wait_entry(&entry)) ++met_in_barrier;
}

static struct fid_cntr* open_counter(void) {
  struct fi_cntr_attr attributes;
  struct fid_cntr* counter;
  memset(&attributes, 0, sizeof attributes);
  attributes.events = FI_CNTR_EVENTS_COMP;
  attributes.wait_obj = FI_WAIT_UNSPEC;
  OK(fi_cntr_open(domain, &attributes, &counter, NULL));
  return counter;
}

static void start(void) {
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  other = 1 - me;
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_FENCE;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = region_mode;
  hints->tx_attr->op_flags = FI_COMPLETION;
  hints->rx_attr->op_flags = FI_COMPLETION;
  hints->fabric_attr->prov_name = strdup("cxi");
  OK(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info));
  fi_freeinfo(hints);
  OK(fi_fabric(info->fabric_attr, &fabric, NULL));
  OK(fi_domain(fabric, info, &domain, NULL));
  open_queue_and_addresses(FI_WAIT_UNSPEC);
  sends = open_counter();
  receives = open_counter();
  memory_operations = open_counter();
  OK(fi_endpoint(domain, info, &ep, NULL));
  OK(fi_ep_bind(ep, &av->fid, 0));
  OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
  OK(fi_ep_bind(ep, &sends->fid, FI_SEND));
  OK(fi_ep_bind(ep, &receives->fid, FI_RECV));
  OK(fi_ep_bind(ep, &memory_operations->fid, FI_READ | FI_WRITE));
  OK(fi_enable(ep));

  uint32_t own[2];
  size_t length = sizeof own;
  OK(fi_getname(&ep->fid, own, &length));
  CHECK(own[0] == (uint32_t)me * 128 + 1);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t address[2] = {r * 128 + 1, 0};
    CHECK(fi_av_insert(av, address, 1, NULL, 0, NULL) == 1);
  }
  memory = calloc(1, region_bytes);
  OK(fi_mr_reg(domain, memory, region_bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, region_key, 0, &region, NULL));
  OK(fi_mr_bind(region, &ep->fid, 0));
  OK(fi_mr_enable(region));
  MPI_Barrier(MPI_COMM_WORLD);
  barrier();
}

static void finish(const char* what) {
  struct fi_cq_tagged_entry entry;
  barrier();
  CHECK(met_in_barrier == 0);
  CHECK(fi_cq_sread(cq, &entry, 1, NULL, 1) == -FI_EAGAIN); /* nothing more comes, within a millisecond */
  OK(fi_close(&region->fid));
  OK(fi_close(&ep->fid));
  OK(fi_close(&cq->fid));
  OK(fi_close(&av->fid));
  OK(fi_close(&sends->fid));
  OK(fi_close(&receives->fid));
  OK(fi_close(&memory_operations->fid));
  OK(fi_close(&domain->fid));
  OK(fi_close(&fabric->fid));
  fi_freeinfo(info);
  free(memory);
  printf("rank %d: %s: all as libfabric says\n", me, what);
  MPI_Finalize();
}

#endif
