/* Two ranks: what settings of the cxi provider change between two end-points. Virtual networks: who is on another one
 * is not reached, by messages, writes or reads. Writes with data: run with FI_CXI_ENABLE_WRITEDATA=1. */
#include "rank.h"

/* A second end-point with objects of its own, number 2 of its rank. */
static struct fi_info* own_info;
static struct fid_domain* own_domain;
static struct fid_av* own_av;
static struct fid_cq* own_cq;
static struct fid_ep* own_ep;

static void open_own(uint16_t network, int key_mode) {
  struct {
    uint32_t service;
    uint16_t network;
  } key = {1, network};
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_TAGGED | FI_RMA | FI_SOURCE;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | key_mode;
  hints->domain_attr->auth_key = malloc(sizeof key);
  memcpy(hints->domain_attr->auth_key, &key, sizeof key);
  hints->domain_attr->auth_key_size = sizeof key;
  hints->fabric_attr->prov_name = strdup("cxi");
  OK(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &own_info));
  fi_freeinfo(hints);
  struct fi_av_attr av_attributes;
  struct fi_cq_attr cq_attributes;
  memset(&av_attributes, 0, sizeof av_attributes);
  memset(&cq_attributes, 0, sizeof cq_attributes);
  cq_attributes.format = FI_CQ_FORMAT_DATA;
  OK(fi_domain(fabric, own_info, &own_domain, NULL));
  OK(fi_av_open(own_domain, &av_attributes, &own_av, NULL));
  OK(fi_cq_open(own_domain, &cq_attributes, &own_cq, NULL));
  OK(fi_endpoint(own_domain, own_info, &own_ep, NULL));
  OK(fi_ep_bind(own_ep, &own_av->fid, 0));
  OK(fi_ep_bind(own_ep, &own_cq->fid, FI_TRANSMIT | FI_RECV));
  OK(fi_enable(own_ep));
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t address[2] = {r * 128 + 2, 0};
    CHECK(fi_av_insert(own_av, address, 1, NULL, 0, NULL) == 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void close_own(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  OK(fi_close(&own_ep->fid));
  OK(fi_close(&own_cq->fid));
  OK(fi_close(&own_av->fid));
  OK(fi_close(&own_domain->fid));
  fi_freeinfo(own_info);
}

/* The error number of the next completion; 0: a success, which is in `entry`. */
static int next(struct fi_cq_data_entry* entry, fi_addr_t* source) {
  ssize_t got;
  struct fi_cq_err_entry error;
  while ((got = fi_cq_readfrom(own_cq, entry, 1, source)) == -FI_EAGAIN) {
  }
  if (got == 1) return 0;
  CHECK(got == -FI_EAVAIL);
  memset(&error, 0, sizeof error);
  CHECK(fi_cq_readerr(own_cq, &error, 0) == 1);
  return error.err;
}

static void networks(uint16_t of_rank_1, int expected) {
  char text[8] = "hello";
  struct fi_cq_data_entry entry;
  fi_addr_t source;
  open_own(me == 0 ? 20 : of_rank_1, 0);
  if (me == 0) {
    static char large[100000];
    OK(fi_tsend(own_ep, text, sizeof text, NULL, 1, 9, NULL));
    CHECK(next(&entry, &source) == expected);
    OK(fi_tsend(own_ep, large, sizeof large, NULL, 1, 10, NULL));
    CHECK(next(&entry, &source) == expected);
    OK(fi_write(own_ep, text, sizeof text, NULL, 1, 0, 77, NULL));
    CHECK(next(&entry, &source) == (expected != 0 ? expected : FI_EKEYREJECTED));
    OK(fi_read(own_ep, text, sizeof text, NULL, 1, 0, 77, NULL));
    CHECK(next(&entry, &source) == (expected != 0 ? expected : FI_EKEYREJECTED));
  } else if (expected == 0) {
    static char received[100000];
    OK(fi_trecv(own_ep, received, 8, NULL, FI_ADDR_UNSPEC, 9, 0, NULL));
    CHECK(next(&entry, &source) == 0);
    CHECK(strcmp(received, "hello") == 0);
    OK(fi_trecv(own_ep, received, sizeof received, NULL, FI_ADDR_UNSPEC, 10, 0, NULL));
    CHECK(next(&entry, &source) == 0);
  }
  close_own();
}

static void writes_with_data(void) {
  static char target[64];
  struct fid_mr* own_region;
  struct fi_cq_data_entry entry;
  fi_addr_t source;
  uint64_t key = 0;
  open_own(20, FI_MR_PROV_KEY);
  OK(fi_mr_reg(own_domain, target, sizeof target, FI_REMOTE_WRITE, 0, 0, 0, &own_region, target));
  OK(fi_mr_bind(own_region, &own_ep->fid, 0));
  OK(fi_mr_enable(own_region));
  if (me == 1) key = fi_mr_key(own_region);
  MPI_Bcast(&key, 1, MPI_UINT64_T, 1, MPI_COMM_WORLD);
  if (me == 0) {
    char text[8] = "data";
    OK(fi_writedata(own_ep, text, sizeof text, NULL, 1234, 1, 16, key, NULL));
    CHECK(next(&entry, &source) == 0);
    CHECK((entry.flags & FI_REMOTE_CQ_DATA) == 0);
    OK(fi_inject_writedata(own_ep, text, 4, 5678, 1, 32, key));
  } else {
    CHECK(next(&entry, &source) == 0);
    CHECK(entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
    CHECK(entry.data == 1234);
    CHECK(entry.len == 8);
    CHECK(entry.buf == target + 16);
    CHECK(entry.op_context == target);
    CHECK(source == 0);
    CHECK(strcmp(target + 16, "data") == 0);
    CHECK(next(&entry, &source) == 0);
    CHECK(entry.data == 5678);
    CHECK(memcmp(target + 32, "data", 4) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  OK(fi_close(&own_region->fid));
  close_own();
}

int main(void) {
  start();
  networks(20, 0);
  networks(21, FI_ENOTCONN);
  writes_with_data();
  finish("settings");
}
