// Point-to-point data in every send mode, expected and unexpected, at sizes on both sides of each protocol limit of
// a Slingshot NIC and of MPICH (inline 192 B, one packet 2 KiB, eager to rendezvous); sendrecv, self, persistent and
// partitioned messages. Which message matches which receive is matching.c's subject.
#include "check.h"

static const int message_sizes[] = {0, 1, 8, 192, 193, 2048, 4096, 18433, 18434, 65536, 1048576 + 3};
enum { size_count = sizeof message_sizes / sizeof message_sizes[0], largest = 1048576 + 3 };

typedef enum { standard, buffered, synchronous, ready, mode_count } Mode;
static const char* const mode_names[mode_count] = {"standard", "buffered", "synchronous", "ready"};
enum { data_tag = 7, token_tag = 8 };

static unsigned char *outgoing, *incoming;

static void swap_tokens(int partner) {
  MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, token_tag, NULL, 0, MPI_BYTE, partner, token_tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void send_blocking(Mode mode, int bytes, int partner) {
  static int (*const call[mode_count])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send, MPI_Bsend,
                                                                                              MPI_Ssend, MPI_Rsend};
  call[mode](outgoing, bytes, MPI_BYTE, partner, data_tag, MPI_COMM_WORLD);
}

static void send_nonblocking(Mode mode, int bytes, int partner, MPI_Request* request) {
  static int (*const call[mode_count])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {
      MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
  call[mode](outgoing, bytes, MPI_BYTE, partner, data_tag, MPI_COMM_WORLD, request);
}

static void send_init(Mode mode, int bytes, int partner, MPI_Request* request) {
  static int (*const call[mode_count])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {
      MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init};
  call[mode](outgoing, bytes, MPI_BYTE, partner, data_tag, MPI_COMM_WORLD, request);
}

static void require_arrived(const MPI_Status* status, int bytes, int partner, const char* what) {
  int count;
  if (partner == MPI_PROC_NULL) return;
  MPI_Get_count(status, MPI_BYTE, &count);
  REQUIRE_EQUAL(count, bytes, "the received count");
  REQUIRE_EQUAL(status->MPI_SOURCE, partner, "the source");
  REQUIRE_EQUAL(status->MPI_TAG, data_tag, "the tag");
  require_bytes(incoming, (size_t)bytes, partner + bytes, what);
  memset(incoming, 0, (size_t)bytes);
}

// The receive is posted, and the partner knows it, before the message is sent.
static void exchange_expected(Mode mode, int bytes, int nonblocking) {
  int partner = partner_rank();
  MPI_Request receive, send = MPI_REQUEST_NULL;
  MPI_Status status;
  fill_bytes(outgoing, (size_t)bytes, my_rank + bytes);
  MPI_Irecv(incoming, bytes, MPI_BYTE, partner, data_tag, MPI_COMM_WORLD, &receive);
  swap_tokens(partner);
  if (nonblocking)
    send_nonblocking(mode, bytes, partner, &send);
  else
    send_blocking(mode, bytes, partner);
  MPI_Wait(&receive, &status);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  require_arrived(&status, bytes, partner, mode_names[mode]);
}

// The receive is posted only after the partner's token, which was sent behind the message: it comes unexpected.
static void exchange_unexpected(Mode mode, int bytes) {
  int partner = partner_rank();
  MPI_Request send;
  MPI_Status status;
  fill_bytes(outgoing, (size_t)bytes, my_rank + bytes);
  send_nonblocking(mode, bytes, partner, &send);
  swap_tokens(partner);
  if (mode == synchronous && partner != MPI_PROC_NULL) {
    int done;
    MPI_Test(&send, &done, MPI_STATUS_IGNORE);
    REQUIRE(!done, "a synchronous send of %d bytes completed before its receive was posted", bytes);
  }
  swap_tokens(partner);  // nobody posts before both have tested
  MPI_Recv(incoming, bytes, MPI_BYTE, partner, data_tag, MPI_COMM_WORLD, &status);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  require_arrived(&status, bytes, partner, mode_names[mode]);
}

static void exchange_persistent(Mode mode, int bytes) {
  int partner = partner_rank();
  MPI_Request receive, send;
  MPI_Status status;
  send_init(mode, bytes, partner, &send);
  MPI_Recv_init(incoming, bytes, MPI_BYTE, partner, data_tag, MPI_COMM_WORLD, &receive);
  for (int start = 0; start < 2; ++start) {
    fill_bytes(outgoing, (size_t)bytes, my_rank + bytes);
    MPI_Start(&receive);
    swap_tokens(partner);
    MPI_Startall(1, &send);
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    require_arrived(&status, bytes, partner, "persistent");
    REQUIRE(send != MPI_REQUEST_NULL, "a persistent request was freed by MPI_Wait");
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

static void exchange_around_the_ring(int bytes) {
  MPI_Status status;
  fill_bytes(outgoing, (size_t)bytes, my_rank);
  MPI_Sendrecv(outgoing, bytes, MPI_BYTE, right_rank(), 3, incoming, bytes, MPI_BYTE, left_rank(), 3, MPI_COMM_WORLD,
               &status);
  require_bytes(incoming, (size_t)bytes, left_rank(), "sendrecv");
  MPI_Sendrecv_replace(incoming, bytes, MPI_BYTE, right_rank(), 4, left_rank(), 4, MPI_COMM_WORLD, &status);
  int two_left = (my_rank + 2 * rank_count - 2) % rank_count;
  require_bytes(incoming, (size_t)bytes, two_left, "sendrecv_replace");
}

static void send_to_self(int bytes) {
  MPI_Request request;
  MPI_Status status;
  fill_bytes(outgoing, (size_t)bytes, my_rank);
  MPI_Isend(outgoing, bytes, MPI_BYTE, my_rank, data_tag, MPI_COMM_WORLD, &request);
  MPI_Recv(incoming, bytes, MPI_BYTE, my_rank, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  require_bytes(incoming, (size_t)bytes, my_rank, "to itself");
  REQUIRE_EQUAL(status.MPI_SOURCE, my_rank, "the source of a message to itself");
}

static void exchange_partitioned(int partitions, int bytes_each) {
  int partner = partner_rank();
  size_t bytes = (size_t)partitions * (size_t)bytes_each;
  if (partner == MPI_PROC_NULL) return;
  MPI_Request send, receive;
  MPI_Psend_init(outgoing, partitions, bytes_each, MPI_BYTE, partner, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(incoming, partitions, bytes_each, MPI_BYTE, partner, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  for (int start = 0; start < 2; ++start) {
    MPI_Start(&receive);
    MPI_Start(&send);
    fill_bytes(outgoing, bytes, my_rank + start);
    for (int p = partitions - 1; p >= 0; --p) MPI_Pready(p, send);
    int arrived = 0;
    while (!arrived) MPI_Parrived(receive, 0, &arrived);
    require_bytes(incoming, (size_t)bytes_each, partner + start, "the first partition");
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    require_bytes(incoming, bytes, partner + start, "all partitions");
  }
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  outgoing = allocate(largest);
  incoming = allocate(largest);
  int pool_bytes = 2 * (largest + MPI_BSEND_OVERHEAD);
  void* pool = allocate((size_t)pool_bytes);
  MPI_Buffer_attach(pool, pool_bytes);
  for (int s = 0; s < size_count; ++s) {
    int bytes = message_sizes[s];
    for (Mode mode = standard; mode < mode_count; ++mode) {
      exchange_expected(mode, bytes, 0);
      exchange_expected(mode, bytes, 1);
      exchange_persistent(mode, bytes);
      if (mode != ready) exchange_unexpected(mode, bytes);
    }
    exchange_around_the_ring(bytes);
    send_to_self(bytes);
  }
  exchange_partitioned(4, 100);
  exchange_partitioned(8, 40000);
  MPI_Buffer_detach(&pool, &pool_bytes);
  free(pool);
  free(outgoing);
  free(incoming);
  return check_end("p2p");
}
