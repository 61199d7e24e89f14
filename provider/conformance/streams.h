/* What the programs about stream-triggered communication have: an end-point on the provider "cxi" beside MPI, the GPU
 * runtime that the machine has, CUDA or HIP, counters that a stream fires and waits for, and clocks of what the host
 * does. */
#ifndef DRYFLY_CONFORMANCE_STREAMS_H
#define DRYFLY_CONFORMANCE_STREAMS_H

#include <dlfcn.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>

#include "end_point.h"

/* Of fi_cxi_ext.h, which distributions' headers lack. */
#define FI_CXI_COUNTER_OPS "cxi_counter_ops"
#define FI_CXI_CNTR_WB (1ULL << 62)
struct fi_cxi_cntr_ops {
  int (*set_wb_buffer)(struct fid* fid, void* buf, size_t len);
  int (*get_mmio_addr)(struct fid* fid, void** addr, size_t* len);
};
#define WRITTEN_BACK(value) (1ULL << 63 | (value))

enum { ranks_max = 64, key = 1000, any_way = 4 };

static int ranks, is_hip;

static struct {
  int (*malloc)(void**, size_t);
  int (*malloc_host)(void**, size_t, unsigned);
  int (*copy)(void*, const void*, size_t, int);
  int (*copy_async)(void*, const void*, size_t, int, void*);
  int (*fill)(void*, int, size_t);
  int (*stream)(void**);
  int (*synchronize)(void*);
  int (*query)(void*);
  int (*call)(void*, void (*)(void*), void*);
  int (*event)(void**);
  int (*record)(void*, void*);
  int (*elapsed)(float*, void*, void*);
  int (*register_host)(void*, size_t, unsigned);
  int (*unregister_host)(void*);
  int (*device_pointer)(void**, void*, unsigned);
  int (*write)(void*, void*, uint64_t, unsigned);
  int (*wait_cuda)(void*, void*, uint64_t, unsigned);
  int (*wait_hip)(void*, void*, uint64_t, unsigned, uint64_t);
  int (*batch_cuda)(void*, unsigned, void*, unsigned);
} gpu;

static void* symbol(void* library, const char* name) {
  void* const found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    printf("no %s\n", name);
    exit(1);
  }
  return found;
}

static void load_gpu(void) {
  const char* const gpus = getenv("DRYFLY_GPU");
  is_hip = gpus != NULL && strstr(gpus, "runtime=hip") != NULL;
  void* const runtime = dlopen(is_hip ? "libamdhip64.so.6" : "libcudart.so.12", RTLD_NOW);
  void* const driver = is_hip ? runtime : dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(field, cuda_name, hip_name) *(void**)&gpu.field = symbol(runtime, is_hip ? hip_name : cuda_name)
  FIND(malloc, "cudaMalloc", "hipMalloc");
  FIND(malloc_host, "cudaHostAlloc", "hipHostMalloc");
  FIND(copy, "cudaMemcpy", "hipMemcpy");
  FIND(copy_async, "cudaMemcpyAsync", "hipMemcpyAsync");
  FIND(fill, "cudaMemset", "hipMemset");
  FIND(stream, "cudaStreamCreate", "hipStreamCreate");
  FIND(synchronize, "cudaStreamSynchronize", "hipStreamSynchronize");
  FIND(query, "cudaStreamQuery", "hipStreamQuery");
  FIND(call, "cudaLaunchHostFunc", "hipLaunchHostFunc");
  FIND(event, "cudaEventCreate", "hipEventCreate");
  FIND(record, "cudaEventRecord", "hipEventRecord");
  FIND(elapsed, "cudaEventElapsedTime", "hipEventElapsedTime");
  FIND(register_host, "cudaHostRegister", "hipHostRegister");
  FIND(unregister_host, "cudaHostUnregister", "hipHostUnregister");
  FIND(device_pointer, "cudaHostGetDevicePointer", "hipHostGetDevicePointer");
#undef FIND
  *(void**)&gpu.write = symbol(driver, is_hip ? "hipStreamWriteValue64" : "cuStreamWriteValue64_v2");
  if (is_hip) *(void**)&gpu.wait_hip = symbol(driver, "hipStreamWaitValue64");
  if (!is_hip) *(void**)&gpu.wait_cuda = symbol(driver, "cuStreamWaitValue64_v2");
  if (!is_hip) *(void**)&gpu.batch_cuda = symbol(driver, "cuStreamBatchMemOp_v2");
}

/* In stream order: until the word is no less. */
static int stream_wait(void* stream, void* at, uint64_t value) {
  return is_hip ? gpu.wait_hip(stream, at, value, 0, ~0ULL) : gpu.wait_cuda(stream, at, value, 0);
}

/* As CUDA's CUstreamBatchMemOpParams has it: several of these in one call. HIP had none before its release 6.4. */
enum { waits = 4, writes = 5 };
struct word {
  uint32_t kind;
  void* at;
  uint64_t value;
  uint32_t flags;
  uint64_t rest[2];
};

static inline void stream_words(void* stream, struct word* words, unsigned count) {
  if (!is_hip) {
    OK(gpu.batch_cuda(stream, count, words, 0));
    return;
  }
  for (unsigned i = 0; i < count; ++i) {
    OK(words[i].kind == waits ? stream_wait(stream, words[i].at, words[i].value)
                              : gpu.write(stream, words[i].at, words[i].value, 0));
  }
}

static fi_addr_t peers[ranks_max];

static void start(void) {
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(ranks <= ranks_max);
  load_gpu();
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_TAGGED | FI_RMA | FI_HMEM | FI_TRIGGER | FI_RMA_EVENT | FI_DIRECTED_RECV;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
  hints->fabric_attr->prov_name = strdup("cxi");
  OK(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info));
  fi_freeinfo(hints);
  OK(fi_fabric(info->fabric_attr, &fabric, NULL));
  OK(fi_domain(fabric, info, &domain, NULL));
  open_queue_and_addresses(FI_WAIT_UNSPEC);
  OK(fi_endpoint(domain, info, &ep, NULL));
  OK(fi_ep_bind(ep, &av->fid, 0));
  OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
  OK(fi_enable(ep));
  char own[64], all[ranks_max * 64];
  size_t length = sizeof own;
  OK(fi_getname(&ep->fid, own, &length));
  MPI_Allgather(own, (int)length, MPI_BYTE, all, (int)length, MPI_BYTE, MPI_COMM_WORLD);
  CHECK(fi_av_insert(av, all, (size_t)ranks, peers, 0, NULL) == ranks);
}

/* Memory of the device that others write to. */
static struct fid_mr* expose(void* memory, size_t bytes, uint64_t with_key) {
  struct fid_mr* region;
  struct iovec part = {memory, bytes};
  struct fi_mr_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.mr_iov = &part;
  attributes.iov_count = 1;
  attributes.access = FI_REMOTE_WRITE;
  attributes.requested_key = with_key;
  attributes.iface = is_hip ? FI_HMEM_ROCR : FI_HMEM_CUDA;
  OK(fi_mr_regattr(domain, &attributes, 0, &region));
  OK(fi_mr_bind(region, &ep->fid, 0));
  OK(fi_mr_enable(region));
  return region;
}

/* A counter that a stream fires by its doorbell, and that it can wait for in memory of the device. Work that it sets
 * off counts itself there too: the nth is for 2n - 1, and the counter is written back at 2n. */
struct trigger {
  struct fid_cntr* counter;
  void* page;
  void* doorbell; /* as the device knows the page */
  void* value;
};

static struct trigger open_trigger(void) {
  struct trigger made;
  struct fi_cxi_cntr_ops* calls;
  size_t bytes;
  OK(fi_cntr_open(domain, NULL, &made.counter, NULL));
  OK(fi_open_ops(&made.counter->fid, FI_CXI_COUNTER_OPS, 0, (void**)&calls, NULL));
  OK(calls->get_mmio_addr(&made.counter->fid, &made.page, &bytes));
  OK(gpu.register_host(made.page, bytes, is_hip ? 0 : 4)); /* cudaHostRegisterIoMemory */
  OK(gpu.device_pointer(&made.doorbell, made.page, 0));
  OK(gpu.malloc(&made.value, sizeof(uint64_t)));
  OK(calls->set_wb_buffer(&made.counter->fid, made.value, sizeof(uint64_t)));
  return made;
}

static void close_trigger(const struct trigger* trigger) {
  OK(gpu.unregister_host(trigger->page));
  OK(fi_close(&trigger->counter->fid));
}

/* Queues the nth writes of the data and of a flag behind them. What they are described by is the program's to keep. */
struct send {
  struct iovec parts[2];
  struct fi_rma_iov remotes[2];
  struct fi_op_rma writes[2];
  struct fi_deferred_work work[2];
  uint64_t flag;
};

static void queue_send(struct send* send, const struct trigger* trigger, uint64_t n, void* from, size_t bytes,
                       fi_addr_t to, uint64_t data_at, uint64_t flag_at) {
  memset(send, 0, sizeof *send);
  send->flag = n;
  send->parts[0] = (struct iovec){from, bytes};
  send->parts[1] = (struct iovec){&send->flag, sizeof send->flag};
  send->remotes[0] = (struct fi_rma_iov){data_at, bytes, key};
  send->remotes[1] = (struct fi_rma_iov){flag_at, sizeof send->flag, key};
  for (int i = 0; i < 2; ++i) {
    send->writes[i] = (struct fi_op_rma){
        ep, {&send->parts[i], NULL, 1, to, &send->remotes[i], 1, NULL, 0}, i == 0 ? FI_CXI_CNTR_WB : 0};
    send->work[i].threshold = 2 * n - 1;
    send->work[i].triggering_cntr = trigger->counter;
    send->work[i].completion_cntr = i == 0 ? trigger->counter : NULL;
    send->work[i].op_type = FI_OP_WRITE;
    send->work[i].op.rma = &send->writes[i];
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &send->work[i]));
  }
}

/* Where the host's time goes, in seconds. */
static double posting, enqueueing, waiting;
#define IN(clock, what)                \
  do {                                 \
    const double began_ = MPI_Wtime(); \
    what;                              \
    (clock) += MPI_Wtime() - began_;   \
  } while (0)

static inline void report(const char* how, double took, int times) {
  if (me != 0) return;
  printf("%s: %.3f us each, of them the host posts %.3f, enqueues %.3f and waits %.3f\n", how, took / times * 1e6,
         posting / times * 1e6, enqueueing / times * 1e6, waiting / times * 1e6);
}

static inline void receive_from(int rank, void* to, size_t bytes, uint64_t tag) {
  const struct iovec part = {to, bytes};
  const struct fi_msg_tagged message = {&part, NULL, 1, peers[rank], tag, 0, to, 0};
  OK(fi_trecvmsg(ep, &message, FI_COMPLETION));
}
static inline void send_to(int rank, const void* from, size_t bytes, uint64_t tag) {
  const struct iovec part = {(void*)from, bytes};
  const struct fi_msg_tagged message = {&part, NULL, 1, peers[rank], tag, 0, (void*)from, 0};
  OK(fi_tsendmsg(ep, &message, FI_COMPLETION));
}
static inline void wait_entries(int count) {
  struct fi_cq_tagged_entry entry;
  for (; count > 0; --count) wait_entry(&entry);
}

#endif
