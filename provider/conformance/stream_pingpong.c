/* A ping-pong of buffers on GPUs between ranks 0 and 1, each message behind work of a stream (a copy within the
 * device), driven by the hosts, and by the streams on the NIC's triggered operations. Arguments: bytes, round trips,
 * and `streams` or `hosts` for one of the two alone; `lost`: rank 1 never answers, and the other's stream waits for
 * ever.
 */
#include "streams.h"

static char *field, *out, *in;
static size_t bytes;
static void* stream;

static void fill(char with) {
  char* const host = malloc(bytes);
  memset(host, with, bytes);
  OK(gpu.copy(field, host, bytes, any_way));
  OK(gpu.fill(in, 0, bytes + sizeof(uint64_t)));
  free(host);
}

static void check(char wanted) {
  char* const host = malloc(bytes);
  OK(gpu.copy(host, in, bytes, any_way));
  for (size_t i = 0; i < bytes; ++i) CHECK(host[i] == wanted);
  free(host);
}

static void work(void) { OK(gpu.copy_async(out, field, bytes, any_way, stream)); }

static void by_hosts(int times) {
  const int other = 1 - me;
  fill((char)(1 + me));
  MPI_Barrier(MPI_COMM_WORLD);
  posting = enqueueing = waiting = 0;
  const double began = MPI_Wtime();
  for (int i = 0; i < times; ++i) {
    IN(posting, receive_from(other, in, bytes, 1));
    if (me == 1) IN(waiting, wait_entries(1));
    IN(enqueueing, work());
    IN(waiting, OK(gpu.synchronize(stream)));
    IN(posting, send_to(other, out, bytes, 1));
    IN(waiting, wait_entries(me == 0 ? 2 : 1));
  }
  report("hosts", MPI_Wtime() - began, times);
  check((char)(1 + other));
}

/* The data are followed by a flag: how many messages have come. */
static void by_streams(int times, int lost) {
  const int other = 1 - me;
  const struct trigger trigger = open_trigger();
  struct send* const sends = calloc((size_t)times, sizeof *sends);
  fill((char)(3 + me));
  MPI_Barrier(MPI_COMM_WORLD);
  posting = enqueueing = waiting = 0;
  const double began = MPI_Wtime();
  for (int i = 0; i < times; ++i) {
    const uint64_t n = (uint64_t)i + 1;
    IN(posting, queue_send(&sends[i], &trigger, n, out, bytes, peers[other], 0, bytes));
    if (me == 1) IN(enqueueing, OK(stream_wait(stream, in + bytes, n)));
    IN(enqueueing, work());
    if (!lost || me == 0) IN(enqueueing, OK(gpu.write(stream, trigger.doorbell, 1, 0)));
    if (me == 0) IN(enqueueing, OK(stream_wait(stream, in + bytes, n)));
  }
  const double free_from = MPI_Wtime();
  OK(stream_wait(stream, trigger.value, WRITTEN_BACK(2 * (uint64_t)times)));
  OK(gpu.synchronize(stream));
  const double ended = MPI_Wtime();
  report("streams", ended - began, times);
  if (me == 0)
    printf("streams: the host is free after %.3f us of %.3f\n", (free_from - began) * 1e6, (ended - began) * 1e6);
  check((char)(3 + other));
  MPI_Barrier(MPI_COMM_WORLD);
  close_trigger(&trigger);
  free(sends);
}

int main(int argc, char** argv) {
  start();
  CHECK(argc >= 3 && ranks == 2);
  bytes = (size_t)atoi(argv[1]) / 8 * 8;
  const int times = atoi(argv[2]);
  const char* const how = argc > 3 ? argv[3] : "";
  OK(gpu.malloc((void**)&field, bytes));
  OK(gpu.malloc((void**)&out, bytes));
  OK(gpu.malloc((void**)&in, bytes + sizeof(uint64_t)));
  OK(gpu.stream(&stream));
  struct fid_mr* const region = expose(in, bytes + sizeof(uint64_t), key);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(how, "streams") != 0 && strcmp(how, "lost") != 0) by_hosts(times);
  if (strcmp(how, "hosts") != 0) by_streams(times, strcmp(how, "lost") == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(fi_close(&region->fid));
  if (me == 0) printf("ok stream_pingpong\n");
  MPI_Finalize();
  return 0;
}
