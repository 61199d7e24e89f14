/* What every conformance program has: an end-point with a queue and a table of addresses on the provider "cxi", beside
 * MPI. Every check ends the program with a sentence when it fails. */
#ifndef DRYFLY_CONFORMANCE_END_POINT_H
#define DRYFLY_CONFORMANCE_END_POINT_H

#include <mpi.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "rank %d: %s:%d: not so: %s\n", me, __FILE__, __LINE__, #condition); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

#define OK(call)                                                                                              \
  do {                                                                                                        \
    const long answer_ = (long)(call);                                                                        \
    if (answer_ != 0) {                                                                                       \
      fprintf(stderr, "rank %d: %s:%d: %s: %s\n", me, __FILE__, __LINE__, #call, fi_strerror((int)-answer_)); \
      exit(1);                                                                                                \
    }                                                                                                         \
  } while (0)

static int me;
static struct fi_info* info;
static struct fid_fabric* fabric;
static struct fid_domain* domain;
static struct fid_av* av;
static struct fid_cq* cq;
static struct fid_ep* ep;

static void wait_entry(struct fi_cq_tagged_entry* entry) {
  ssize_t got;
  while ((got = fi_cq_read(cq, entry, 1)) == -FI_EAGAIN) {
  }
  if (got == -FI_EAVAIL) {
    struct fi_cq_err_entry error;
    memset(&error, 0, sizeof error);
    fi_cq_readerr(cq, &error, 0);
    fprintf(stderr, "rank %d: unexpected error completion: %s, %d\n", me, fi_strerror(error.err), error.prov_errno);
    exit(1);
  }
  CHECK(got == 1);
}

static inline void wait_error(struct fi_cq_err_entry* error) {
  struct fi_cq_tagged_entry entry;
  ssize_t got;
  while ((got = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN) {
  }
  CHECK(got == -FI_EAVAIL);
  memset(error, 0, sizeof *error);
  CHECK(fi_cq_readerr(cq, error, 0) == 1);
}

/* A queue of tagged entries that can be waited for as said, and a table of addresses. */
static void open_queue_and_addresses(enum fi_wait_obj wait_object) {
  struct fi_av_attr av_attributes;
  struct fi_cq_attr cq_attributes;
  memset(&av_attributes, 0, sizeof av_attributes);
  memset(&cq_attributes, 0, sizeof cq_attributes);
  av_attributes.type = FI_AV_TABLE;
  cq_attributes.format = FI_CQ_FORMAT_TAGGED;
  cq_attributes.wait_obj = wait_object;
  OK(fi_av_open(domain, &av_attributes, &av, NULL));
  OK(fi_cq_open(domain, &cq_attributes, &cq, NULL));
}

#endif
