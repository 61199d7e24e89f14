/* One rank of a program that uses the fabric's reductions: an end-point with FI_COLLECTIVE on the provider "cxi", and a
 * group of all ranks. MPI only starts and ends the ranks and gives the time. */
#ifndef DRYFLY_CONFORMANCE_GROUP_H
#define DRYFLY_CONFORMANCE_GROUP_H

#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>

#include "end_point.h"

static int size;
static struct fid_eq* eq;
static struct fid_av_set* whole;
static struct fid_mc* group_of_all;
static fi_addr_t all;

static void* next_context(void) {
  struct fi_cq_tagged_entry entry;
  wait_entry(&entry);
  return entry.op_context;
}

static void wait_for(void* context) { CHECK(next_context() == context); }

static void wait_any(int count) {
  while (count-- > 0) next_context();
}

static void wait_joined(struct fid_mc** group, void* context) {
  uint32_t event;
  struct fi_eq_entry entry;
  ssize_t got;
  while ((got = fi_eq_read(eq, &event, &entry, sizeof entry, 0)) == -FI_EAGAIN) {
  }
  CHECK(got == (ssize_t)sizeof entry && event == FI_JOIN_COMPLETE);
  CHECK(entry.context == context && entry.fid == &(*group)->fid);
}

/* 0, or the provider's number of what went wrong. */
static int joined_or_error(void) {
  uint32_t event;
  struct fi_eq_entry entry;
  ssize_t got;
  while ((got = fi_eq_read(eq, &event, &entry, sizeof entry, 0)) == -FI_EAGAIN) {
  }
  if (got != -FI_EAVAIL) return 0;
  struct fi_eq_err_entry error;
  memset(&error, 0, sizeof error);
  CHECK(fi_eq_readerr(eq, &error, 0) == (ssize_t)sizeof error);
  CHECK(error.err == -FI_ECONNREFUSED && error.data == FI_JOIN_COMPLETE);
  return error.prov_errno;
}

static struct fid_av_set* open_set(void) {
  struct fi_av_set_attr attributes;
  struct fid_av_set* set;
  memset(&attributes, 0, sizeof attributes);
  attributes.start_addr = FI_ADDR_NOTAVAIL;
  attributes.end_addr = FI_ADDR_NOTAVAIL;
  attributes.stride = 1;
  OK(fi_av_set(av, &attributes, &set, NULL));
  return set;
}

static void start(void) {
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_COLLECTIVE;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
  hints->fabric_attr->prov_name = strdup("cxi");
  OK(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info));
  CHECK((info->caps & FI_COLLECTIVE) != 0 && (info->caps & FI_MSG) != 0);
  hints->caps = FI_MSG;
  struct fi_info* plain;
  OK(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &plain));
  CHECK((plain->caps & FI_COLLECTIVE) == 0);
  fi_freeinfo(hints);
  OK(fi_fabric(info->fabric_attr, &fabric, NULL));
  OK(fi_domain(fabric, info, &domain, NULL));
  struct fid_ep* without;
  OK(fi_endpoint(domain, plain, &without, NULL));
  CHECK(fi_barrier(without, 1, NULL) == -FI_ENOSYS);
  OK(fi_close(&without->fid));
  fi_freeinfo(plain);
  struct fi_eq_attr eq_attributes;
  memset(&eq_attributes, 0, sizeof eq_attributes);
  open_queue_and_addresses(FI_WAIT_NONE);
  OK(fi_eq_open(fabric, &eq_attributes, &eq, NULL));
  OK(fi_endpoint(domain, info, &ep, NULL));
  OK(fi_ep_bind(ep, &av->fid, 0));
  OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
  OK(fi_ep_bind(ep, &eq->fid, 0));
  OK(fi_enable(ep));
  uint32_t own[2];
  size_t length = sizeof own;
  OK(fi_getname(&ep->fid, own, &length));
  uint32_t* addresses = malloc((size_t)size * sizeof own);
  MPI_Allgather(own, 2, MPI_UINT32_T, addresses, 2, MPI_UINT32_T, MPI_COMM_WORLD);
  CHECK(fi_av_insert(av, addresses, (size_t)size, NULL, 0, NULL) == size);
  free(addresses);
  whole = open_set();
  for (int r = 0; r < size; ++r) OK(fi_av_set_insert(whole, (fi_addr_t)r));
  OK(fi_join_collective(ep, FI_ADDR_NOTAVAIL, whole, 0, &group_of_all, &all));
  wait_joined(&group_of_all, &all);
  all = fi_mc_addr(group_of_all);
}

static void finish(void) {
  char context;
  OK(fi_barrier(ep, all, &context));
  wait_for(&context);
  CHECK(fi_close(&eq->fid) == -FI_EBUSY);
  OK(fi_close(&group_of_all->fid));
  OK(fi_close(&whole->fid));
  OK(fi_close(&ep->fid));
  OK(fi_close(&eq->fid));
  OK(fi_close(&cq->fid));
  OK(fi_close(&av->fid));
  OK(fi_close(&domain->fid));
  OK(fi_close(&fabric->fid));
  fi_freeinfo(info);
  MPI_Finalize();
}

#endif
