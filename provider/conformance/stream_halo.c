/* A halo exchange of fields on GPUs in a ring of ranks: each step copies both edges of the field to buffers, sends them
 * to the neighbours, and copies what has come from them to the field's halo. Driven by the hosts, and by the streams on
 * the NIC's triggered operations. Arguments: bytes of an edge, steps, and `streams` or `hosts` for one of the two
 * alone. */
#include "streams.h"

enum { left, right, sides };

/* Halo, edge, inside, edge, halo, each as long as an edge. */
static char* field;
static char *out[sides], *in;
static size_t bytes;
static int neighbours[sides];
static void* stream;

static char* edge(int side) { return field + (side == left ? 1 : 3) * bytes; }
static char* halo(int side) { return field + (side == left ? 0 : 4) * bytes; }

/* Where what the neighbour on that side sends comes to. Two steps have buffers of their own: a neighbour's next message
 * may be there before the last one is copied, and no later one is, for it answers what is sent behind that copy. */
static size_t in_at(int side, int step) { return (size_t)(step % 2 * sides + side) * bytes; }
static size_t flag_at(int side) { return 2 * sides * bytes + (size_t)side * sizeof(uint64_t); }
static size_t all_in(void) { return flag_at(sides); }

static char value_of(int rank, int side, int round) { return (char)(1 + rank * 4 + side * 2 + round); }

static void fill(int round) {
  char* const host = malloc(5 * bytes);
  memset(host, 0, 5 * bytes);
  memset(host + bytes, value_of(me, left, round), bytes);
  memset(host + 3 * bytes, value_of(me, right, round), bytes);
  OK(gpu.copy(field, host, 5 * bytes, any_way));
  OK(gpu.fill(in, 0, all_in()));
  free(host);
}

static void check(int round) {
  char* const host = malloc(bytes);
  for (int side = 0; side < sides; ++side) {
    OK(gpu.copy(host, halo(side), bytes, any_way));
    for (size_t i = 0; i < bytes; ++i) CHECK(host[i] == value_of(neighbours[side], 1 - side, round));
  }
  free(host);
}

static void pack(void) {
  for (int side = 0; side < sides; ++side) OK(gpu.copy_async(out[side], edge(side), bytes, any_way, stream));
}
static void unpack(int step) {
  for (int side = 0; side < sides; ++side)
    OK(gpu.copy_async(halo(side), in + in_at(side, step), bytes, any_way, stream));
}

static void by_hosts(int steps) {
  fill(0);
  MPI_Barrier(MPI_COMM_WORLD);
  posting = enqueueing = waiting = 0;
  const double began = MPI_Wtime();
  for (int i = 0; i < steps; ++i) {
    for (int side = 0; side < sides; ++side)
      IN(posting, receive_from(neighbours[side], in + in_at(side, i), bytes, (uint64_t)(1 - side)));
    IN(enqueueing, pack());
    IN(waiting, OK(gpu.synchronize(stream)));
    for (int side = 0; side < sides; ++side) IN(posting, send_to(neighbours[side], out[side], bytes, (uint64_t)side));
    IN(waiting, wait_entries(2 * sides));
    IN(enqueueing, unpack(i));
  }
  OK(gpu.synchronize(stream));
  report("hosts", MPI_Wtime() - began, steps);
  check(0);
}

static void by_streams(int steps) {
  struct trigger triggers[sides];
  for (int side = 0; side < sides; ++side) triggers[side] = open_trigger();
  struct send* const sends = calloc((size_t)(steps * sides), sizeof *sends);
  fill(1);
  MPI_Barrier(MPI_COMM_WORLD);
  posting = enqueueing = waiting = 0;
  const double began = MPI_Wtime();
  for (int i = 0; i < steps; ++i) {
    const uint64_t n = (uint64_t)i + 1;
    for (int side = 0; side < sides; ++side) {
      IN(posting, queue_send(&sends[i * sides + side], &triggers[side], n, out[side], bytes, peers[neighbours[side]],
                             in_at(1 - side, i), flag_at(1 - side)));
    }
    struct word sent[sides], come[2 * sides];
    for (int side = 0; side < sides; ++side) {
      sent[side] = (struct word){.kind = waits, .at = triggers[side].value, .value = WRITTEN_BACK(2 * (n - 1))};
      come[side] = (struct word){.kind = writes, .at = triggers[side].doorbell, .value = 1};
      come[sides + side] = (struct word){.kind = waits, .at = in + flag_at(side), .value = n};
    }
    if (i > 0) IN(enqueueing, stream_words(stream, sent, sides));
    IN(enqueueing, pack());
    IN(enqueueing, stream_words(stream, come, 2 * sides));
    IN(enqueueing, unpack(i));
  }
  const double free_from = MPI_Wtime();
  OK(gpu.synchronize(stream));
  const double ended = MPI_Wtime();
  report("streams", ended - began, steps);
  if (me == 0) {
    printf("streams: the host is free after %.3f us of %.3f\n", (free_from - began) * 1e6, (ended - began) * 1e6);
  }
  check(1);
  for (int side = 0; side < sides; ++side)
    OK(stream_wait(stream, triggers[side].value, WRITTEN_BACK(2 * (uint64_t)steps)));
  OK(gpu.synchronize(stream));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int side = 0; side < sides; ++side) close_trigger(&triggers[side]);
  free(sends);
}

int main(int argc, char** argv) {
  start();
  CHECK(argc >= 3 && ranks >= 2);
  bytes = (size_t)atoi(argv[1]) / 8 * 8;
  const int steps = atoi(argv[2]);
  const char* const how = argc > 3 ? argv[3] : "";
  neighbours[left] = (me + ranks - 1) % ranks;
  neighbours[right] = (me + 1) % ranks;
  OK(gpu.malloc((void**)&field, 5 * bytes));
  for (int side = 0; side < sides; ++side) OK(gpu.malloc((void**)&out[side], bytes));
  OK(gpu.malloc((void**)&in, all_in()));
  OK(gpu.stream(&stream));
  struct fid_mr* const region = expose(in, all_in(), key);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(how, "streams") != 0) by_hosts(steps);
  if (strcmp(how, "hosts") != 0) by_streams(steps);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(fi_close(&region->fid));
  if (me == 0) printf("ok stream_halo\n");
  MPI_Finalize();
  return 0;
}
