// Each rank by itself: copies on streams end at virtual instants. Who looks too early sees the old bytes; streams are
// in order, events carry over from one to another, and each copy takes its closed form: what the arguments say of the
// machine, in microseconds (call, query; latency and step between memories; the same within a device) and GB/s (link,
// peer, memory, pageable).
#include <math.h>

#include "check.h"
#include "cudart.h"

enum { bytes = 4 << 20 };

static double call_us, query_us;

static double now_us(void) { return MPI_Wtime() * 1e6; }

// Two readings of the clock lie in it, a nanosecond or so each.
static void near_(const char* what, double us, double wanted_us) {
  REQUIRE(fabs(us - wanted_us) <= 0.2, "%s: %.4f us, and should be %.4f", what, us, wanted_us);
}

static void timed(const char* what, void* to, const void* from, double fixed_us, double rate, int on_devices) {
  const double begin = now_us();
  CHECK(cuda.copy(to, from, bytes, cuda_any_way) == 0);
  if (on_devices) CHECK(cuda.synchronize() == 0);  // such a copy comes back at once
  near_(what, now_us() - begin, call_us + fixed_us + bytes / rate * 1e-3);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  CHECK(argc == 11);
  call_us = atof(argv[1]);
  query_us = atof(argv[2]);
  const double latency_us = atof(argv[3]), step_us = atof(argv[4]);
  const double fixed_us = latency_us + step_us, local_us = atof(argv[5]) + atof(argv[6]);
  const double link = atof(argv[7]), peer = atof(argv[8]), memory = atof(argv[9]), pageable_rate = atof(argv[10]);
  load_cuda();
  char *device = NULL, *second = NULL, *other = NULL, *pinned = NULL, *back = NULL;
  char* pageable = malloc(bytes);
  CHECK(cuda.set(1) == 0 && cuda.malloc((void**)&other, bytes) == 0);
  CHECK(cuda.set(0) == 0 && cuda.malloc((void**)&device, bytes) == 0 && cuda.malloc((void**)&second, bytes) == 0);
  CHECK(cuda.malloc_host((void**)&pinned, bytes) == 0 && cuda.malloc_host((void**)&back, bytes) == 0);
  memset(pinned, 'n', bytes);
  memset(pageable, 'p', bytes);
  memset(back, 'o', bytes);

  timed("in from pageable", device, pageable, fixed_us, pageable_rate, 0);
  timed("out to pageable", pageable, device, fixed_us, pageable_rate, 0);
  timed("in", second, pinned, fixed_us, link, 0);
  timed("out", back, second, fixed_us, link, 0);
  timed("peer", other, device, fixed_us, peer, 1);
  timed("local", second, device, local_us, memory / 2, 1);
  CHECK(back[0] == 'n' && back[bytes - 1] == 'n');
  memset(back, 'o', bytes);
  CHECK(pageable[0] == 'p' && pageable[bytes - 1] == 'p');
  memset(pageable, 'q', 64);
  CHECK(cuda.copy_rows(second + 1, 9, pageable, 8, 3, 4, cuda_any_way) == 0);
  CHECK(cuda.copy_rows(second, 2, pageable, 8, 3, 4, cuda_any_way) == 12);
  CHECK(cuda.copy(pageable, second, 64, cuda_any_way) == 0);
  for (int i = 0; i < 37; ++i) CHECK((pageable[i] == 'q') == (i % 9 >= 1 && i % 9 <= 3 && i < 36));

  void *stream, *next, *began, *ended;
  CHECK(cuda.stream(&stream) == 0 && cuda.stream(&next) == 0 && cuda.event(&began) == 0 && cuda.event(&ended) == 0);
  const double one_us = step_us + bytes / link * 1e-3;
  CHECK(cuda.record(began, stream) == 0);
  const double begin = now_us();
  CHECK(cuda.copy_async(device, pinned, bytes, cuda_any_way, stream) == 0);
  CHECK(cuda.record(ended, stream) == 0);
  CHECK(cuda.stream_wait(next, ended, 0) == 0);
  CHECK(cuda.copy_async(back, device, bytes, cuda_any_way, next) == 0);
  CHECK(back[0] == 'o' && back[bytes - 1] == 'o');
  CHECK(cuda.stream_query(stream) == cuda_not_ready && cuda.event_query(ended) == cuda_not_ready);
  CHECK(cuda.stream_synchronize(stream) == 0 && cuda.event_query(ended) == 0);
  CHECK(back[0] == 'o' && cuda.stream_query(next) == cuda_not_ready);
  CHECK(cuda.stream_synchronize(next) == 0 && cuda.stream_query(next) == 0);
  CHECK(back[0] == 'n' && back[bytes - 1] == 'n');
  CHECK(cuda.missing() == 801);
  float ms = 0;
  CHECK(cuda.elapsed(&ms, began, ended) == 0);
  near_("between events", ms * 1e3, one_us + call_us);
  // The call that gives the first copy, both one behind the other, and the calls behind the last wait.
  near_("both copies", now_us() - begin, call_us + latency_us + 2 * one_us + call_us + query_us);
  return check_end("gpu_streams");
}
