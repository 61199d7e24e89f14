/* What calls of the provider cost the processor: batches of posted receives, injected messages and reads of the
 * completion queue, small enough that no call waits for the simulator. Prints the median over the rounds of each, in
 * nanoseconds of this thread's CPU time a call; reading the clock is measured and taken off. Started by provider-call.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../provider/conformance/rank.h"

enum { batch = 32, rounds = 400, warm_up = 50 };

/* Straight from the kernel: dryfly's preload answers the library's clock calls with virtual time. */
static double now_ns(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double median(double* values) {
  qsort(values + warm_up, rounds - warm_up, sizeof *values, ascending);
  return values[warm_up + (rounds - warm_up) / 2];
}

static void receive(int round, double clock, double* posts, double* reads) {
  static char buffers[batch][8];
  struct fi_cq_tagged_entry entry;
  double start = now_ns();
  for (int i = 0; i < batch; ++i) OK(fi_trecv(ep, buffers[i], 8, NULL, (fi_addr_t)other, (uint64_t)i, 0, buffers[i]));
  posts[round] = (now_ns() - start - clock) / batch;
  barrier();
  const struct timespec until_all_are_here = {0, 1000000};
  nanosleep(&until_all_are_here, NULL);
  int calls = 0;
  start = now_ns();
  for (int got = 0; got < batch; ++calls) {
    if (fi_cq_read(cq, &entry, 1) == 1) ++got;
  }
  reads[round] = (now_ns() - start - clock) / calls;
}

static void inject(int round, double clock, double* injects) {
  barrier();
  const double start = now_ns();
  for (int i = 0; i < batch; ++i) OK(fi_tinject(ep, "8 bytes", 8, (fi_addr_t)other, (uint64_t)i));
  injects[round] = (now_ns() - start - clock) / batch;
}

int main(void) {
  static double clocks[rounds], posts[rounds], reads[rounds], injects[rounds];
  start();
  for (int round = 0; round < rounds; ++round) {
    const double begin = now_ns();
    clocks[round] = now_ns() - begin;
  }
  const double clock = median(clocks);
  for (int round = 0; round < rounds; ++round) {
    if (me == 0) {
      receive(round, clock, posts, reads);
    } else {
      inject(round, clock, injects);
    }
    barrier();
  }
  if (me == 0) printf("trecv %.1f\ncq_read %.1f\n", median(posts), median(reads));
  if (me == 1) printf("tinject %.1f\n", median(injects));
  fflush(stdout);
  finish("provider calls");
}
