/* What a stream's writes and waits take, in closed form, whatever its process does meanwhile; and what they answer.
 * Two ranks. Arguments: the latencies of a command to the NIC and of what it writes back, the step of a copy within the
 * device, the latency before it, and what a device takes for a word, each in us. */
#include <sys/mman.h>
#include <time.h>

#include "streams.h"

static double to_nic_us, from_nic_us, step_us, latency_us, word_us;
static void* stream;

enum doing { synchronizing, sleeping, receiving, polling, all_doings };

static void sleep_us(long us) {
  const struct timespec time = {0, us * 1000};
  nanosleep(&time, NULL);
}

/* Rank 1 sends a message much later than the stream is done. */
static void do_meanwhile(enum doing doing) {
  char token = 0;
  if (doing == sleeping) sleep_us(300);
  if (doing == receiving || doing == polling) {
    if (me == 1) sleep_us(300);
    if (me == 1) MPI_Send(&token, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    if (me == 0 && doing == receiving) MPI_Recv(&token, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (me == 0 && doing == polling) {
      MPI_Request request;
      MPI_Irecv(&token, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
      for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
  }
}

static double between(void* begin, void* end) {
  float ms = 0;
  OK(gpu.elapsed(&ms, begin, end));
  return ms * 1e3;
}

/* A reset of a counter is written back: over to the NIC and back. The wait is enqueued long before the stream comes
 * there; the device is at it while that is under way. */
static void a_doorbell_and_what_is_written_back(void) {
  const struct trigger trigger = open_trigger();
  void *from, *to, *begin, *end;
  OK(gpu.malloc(&from, 8 << 20));
  OK(gpu.malloc(&to, 8 << 20));
  OK(gpu.event(&begin));
  OK(gpu.event(&end));
  for (enum doing doing = 0; doing < all_doings; ++doing) {
    OK(gpu.fill(trigger.value, 0, sizeof(uint64_t)));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) OK(gpu.copy_async(to, from, 8 << 20, any_way, stream));
    OK(gpu.record(begin, stream));
    OK(gpu.write(stream, (uint64_t*)trigger.doorbell + 16, 0, 0));
    OK(stream_wait(stream, trigger.value, WRITTEN_BACK(0)));
    OK(gpu.copy_async(to, from, 8, any_way, stream));
    OK(gpu.record(end, stream));
    CHECK(gpu.query(stream) != 0);
    const double before = MPI_Wtime();
    do_meanwhile(doing);
    const double after = MPI_Wtime();
    OK(gpu.synchronize(stream));
    const double around_us = to_nic_us + from_nic_us;
    const double took = between(begin, end) - word_us - (around_us > word_us ? around_us : word_us) - step_us;
    CHECK(took > 0 && took < 0.001); /* 16 bytes of the device's memory */
    if (doing == sleeping) CHECK(after - before > 299.9e-6 && after - before < 300.1e-6);
    uint64_t value;
    OK(gpu.copy(&value, trigger.value, sizeof value, any_way));
    CHECK(value == WRITTEN_BACK(0));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  close_trigger(&trigger);
}

static void count_call(void* calls) { ++*(int*)calls; }

/* The process waits for what is behind a function of its own, which it has to call itself. */
static void a_function_of_the_hosts_comes_first(void) {
  const struct trigger trigger = open_trigger();
  void *from, *to;
  int calls = 0;
  OK(gpu.malloc(&from, 8 << 20));
  OK(gpu.malloc(&to, 8 << 20));
  OK(gpu.fill(trigger.value, 0, sizeof(uint64_t)));
  OK(gpu.copy_async(to, from, 8 << 20, any_way, stream));
  OK(gpu.call(stream, count_call, &calls));
  OK(gpu.write(stream, (uint64_t*)trigger.doorbell + 16, 0, 0));
  OK(stream_wait(stream, trigger.value, WRITTEN_BACK(0)));
  CHECK(calls == 0);
  OK(gpu.synchronize(stream));
  CHECK(calls == 1);
  MPI_Barrier(MPI_COMM_WORLD);
  close_trigger(&trigger);
}

/* A signal's memory may go when nobody waits for it any more: what looks for changes does not look there. */
static void a_word_whose_memory_is_gone(void) {
  const size_t bytes = 1 << 16;
  char* const word = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int calls = 0;
  OK(gpu.register_host(word, bytes, 0));
  OK(gpu.write(stream, word, 3, 0));
  OK(stream_wait(stream, word, 3));
  OK(gpu.synchronize(stream));
  OK(gpu.unregister_host(word));
  OK(munmap(word, bytes));
  OK(gpu.call(stream, count_call, &calls));
  OK(gpu.synchronize(stream));
  CHECK(calls == 1);
}

/* One stream waits for another's word. */
static void a_word_between_streams(void) {
  void *other, *word, *from, *to, *begin, *end;
  OK(gpu.stream(&other));
  OK(gpu.malloc(&word, sizeof(uint64_t)));
  OK(gpu.malloc(&from, 8 << 20));
  OK(gpu.malloc(&to, 8 << 20));
  OK(gpu.event(&begin));
  OK(gpu.event(&end));
  OK(stream_wait(other, word, 7));
  OK(gpu.record(end, other));
  OK(gpu.copy_async(to, from, 8 << 20, any_way, stream));
  OK(gpu.record(begin, stream));
  OK(gpu.write(stream, word, 6, 0));
  OK(gpu.write(stream, word, 7, 0));
  OK(gpu.synchronize(other));
  CHECK(gpu.query(stream) == 0);
  /* The events' stamps are those of the write and of the wait, if the copy has hidden the calls; else of the calls. */
  CHECK(between(begin, end) > 2 * word_us - 0.001 && between(begin, end) < 2 * word_us + 2 * 2 + latency_us);
}

/* The doorbell is the processor's, too. */
static void the_host_rings(void) {
  const struct trigger trigger = open_trigger();
  static struct send send;
  void *out, *in;
  OK(gpu.malloc(&out, 8));
  OK(gpu.malloc(&in, 16));
  OK(gpu.fill(out, 5, 8));
  struct fid_mr* const region = expose(in, 16, key);
  MPI_Barrier(MPI_COMM_WORLD);
  queue_send(&send, &trigger, 1, out, 8, peers[1 - me], 0, 8);
  *(volatile uint64_t*)trigger.doorbell = 1;
  OK(stream_wait(stream, (char*)in + 8, 1));
  OK(stream_wait(stream, trigger.value, WRITTEN_BACK(2)));
  OK(gpu.synchronize(stream));
  CHECK(fi_cntr_read(trigger.counter) == 2);
  char value;
  OK(gpu.copy(&value, in, 1, any_way));
  CHECK(value == 5);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(fi_close(&region->fid));
  close_trigger(&trigger);
}

static void wrong_calls(void) {
  uint64_t on_host = 0;
  CHECK(gpu.write(stream, &on_host, 1, 0) != 0);
  CHECK(stream_wait(stream, &on_host, 1) != 0);
  CHECK(gpu.write((void*)64, &on_host, 1, 0) != 0);
}

int main(int argc, char** argv) {
  start();
  CHECK(argc == 6 && ranks == 2);
  to_nic_us = atof(argv[1]);
  from_nic_us = atof(argv[2]);
  step_us = atof(argv[3]);
  latency_us = atof(argv[4]);
  word_us = atof(argv[5]);
  OK(gpu.stream(&stream));
  a_doorbell_and_what_is_written_back();
  a_function_of_the_hosts_comes_first();
  a_word_whose_memory_is_gone();
  a_word_between_streams();
  the_host_rings();
  wrong_calls();
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) printf("ok stream_waits\n");
  MPI_Finalize();
  return 0;
}
