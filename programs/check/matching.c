// Which message meets which receive: order, wildcards, probes of all kinds, cancelled and truncated receives, thousands
// of unexpected messages, and the calls that complete several requests. The data itself is p2p.c's subject.
#include "check.h"

// Messages of one sender are received in the order sent, also through two wildcards, whatever their size.
static void wildcards_keep_order(void) {
  enum { per_sender = 60, ints_max = 20000 };
  int* buffer = allocate(ints_max * sizeof(int));
  if (my_rank != 0) {
    for (int i = 0; i < per_sender; ++i) {
      int count = i % 20 == 19 ? ints_max : 1 + i % 5;  // every 20th goes by rendezvous
      for (int k = 0; k < count; ++k) buffer[k] = i;
      MPI_Send(buffer, count, MPI_INT, 0, i % 3, MPI_COMM_WORLD);
    }
  } else {
    int* next = calloc((size_t)rank_count, sizeof(int));
    for (int i = 0; i < per_sender * (rank_count - 1); ++i) {
      MPI_Status status;
      MPI_Recv(buffer, ints_max, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      int* expected = &next[status.MPI_SOURCE];
      REQUIRE_EQUAL(buffer[0], *expected, "the sequence number");
      REQUIRE_EQUAL(status.MPI_TAG, *expected % 3, "the tag");
      ++*expected;
    }
    for (int r = 1; r < rank_count; ++r) REQUIRE_EQUAL(next[r], per_sender, "messages of one sender");
    free(next);
  }
  free(buffer);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Receives are matched in the order posted: a wildcard posted first takes the message, a tag that fits comes second.
static void receives_match_in_posting_order(void) {
  int values[4] = {-1, -1, -1, -1}, left = left_rank(), ready = 0;
  MPI_Request requests[4];
  MPI_Status statuses[4];
  MPI_Irecv(&values[0], 1, MPI_INT, left, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
  MPI_Irecv(&values[2], 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]);
  MPI_Irecv(&values[3], 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &requests[3]);
  MPI_Barrier(MPI_COMM_WORLD);
  static const int tags[4] = {6, 5, 9, 6};  // meant for receives 1, 0, 2, 3
  for (int i = 0; i < 4; ++i) {
    int sent = 10 + i;
    MPI_Send(&sent, 1, MPI_INT, right_rank(), tags[i], MPI_COMM_WORLD);
  }
  MPI_Waitall(4, requests, statuses);
  static const int expected[4] = {11, 10, 12, 13};
  for (int i = 0; i < 4; ++i) REQUIRE_EQUAL(values[i], expected[i], "the message of a posted receive");
  REQUIRE_EQUAL(statuses[1].MPI_TAG, 6, "the tag seen through the wildcard");
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &ready, MPI_STATUS_IGNORE);
  REQUIRE(!ready, "MPI_Iprobe sees a message though all were received");
  MPI_Barrier(MPI_COMM_WORLD);
}

static void probe_tells_source_tag_and_size(int bytes) {
  MPI_Request request;
  MPI_Status status;
  unsigned char *outgoing = allocate((size_t)bytes), *incoming = allocate((size_t)bytes);
  fill_bytes(outgoing, (size_t)bytes, my_rank);
  MPI_Isend(outgoing, bytes, MPI_BYTE, right_rank(), 21, MPI_COMM_WORLD, &request);
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  int count, flag = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  REQUIRE_EQUAL(count, bytes, "the probed count");
  REQUIRE_EQUAL(status.MPI_SOURCE, left_rank(), "the probed source");
  REQUIRE_EQUAL(status.MPI_TAG, 21, "the probed tag");
  MPI_Iprobe(left_rank(), 22, MPI_COMM_WORLD, &flag, &status);
  REQUIRE(!flag, "MPI_Iprobe sees tag 22, which nobody sent");
  while (!flag) MPI_Iprobe(left_rank(), 21, MPI_COMM_WORLD, &flag, &status);
  MPI_Recv(incoming, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  require_bytes(incoming, (size_t)bytes, left_rank(), "the probed message");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(outgoing);
  free(incoming);
  MPI_Barrier(MPI_COMM_WORLD);
}

// A matched message is out of the queue: a receive of the same envelope gets the next one.
static void matched_probe_takes_the_message_out(int bytes, int immediate) {
  unsigned char *outgoing[2], *incoming = allocate((size_t)bytes);
  MPI_Request sends[2];
  for (int i = 0; i < 2; ++i) {
    outgoing[i] = allocate((size_t)bytes);
    fill_bytes(outgoing[i], (size_t)bytes, 1000 * i + my_rank);
    MPI_Isend(outgoing[i], bytes, MPI_BYTE, right_rank(), 23, MPI_COMM_WORLD, &sends[i]);
  }
  MPI_Message first = MPI_MESSAGE_NULL;
  MPI_Status status;
  int flag = 0, count;
  if (immediate) {
    while (!flag) MPI_Improbe(left_rank(), 23, MPI_COMM_WORLD, &flag, &first, &status);
  } else {
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &first, &status);
  }
  MPI_Get_count(&status, MPI_BYTE, &count);
  REQUIRE_EQUAL(count, bytes, "the count of a matched probe");
  MPI_Recv(incoming, bytes, MPI_BYTE, left_rank(), 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  require_bytes(incoming, (size_t)bytes, 1000 + left_rank(), "the receive after a matched probe");
  if (immediate) {
    MPI_Request request;
    MPI_Imrecv(incoming, bytes, MPI_BYTE, &first, &request);
    MPI_Wait(&request, &status);
  } else {
    MPI_Mrecv(incoming, bytes, MPI_BYTE, &first, &status);
  }
  REQUIRE(first == MPI_MESSAGE_NULL, "a received message handle is not MPI_MESSAGE_NULL");
  require_bytes(incoming, (size_t)bytes, left_rank(), "the matched message");
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 2; ++i) free(outgoing[i]);
  free(incoming);
  MPI_Barrier(MPI_COMM_WORLD);
}

// A cancelled receive is gone: the message that would have fitted goes to the receive posted after it.
static void cancelled_receive_takes_nothing(void) {
  int cancelled_value = -1, value = -1, flag = 0, sent = 77;
  MPI_Request cancelled, kept;
  MPI_Status status;
  MPI_Irecv(&cancelled_value, 1, MPI_INT, MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, &cancelled);
  MPI_Irecv(&value, 1, MPI_INT, left_rank(), 31, MPI_COMM_WORLD, &kept);
  MPI_Cancel(&cancelled);
  MPI_Wait(&cancelled, &status);
  MPI_Test_cancelled(&status, &flag);
  REQUIRE(flag, "a receive that nothing matched was not cancelled");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&sent, 1, MPI_INT, right_rank(), 31, MPI_COMM_WORLD);
  MPI_Wait(&kept, &status);
  REQUIRE_EQUAL(value, 77, "the value of the receive that was kept");
  REQUIRE_EQUAL(cancelled_value, -1, "the buffer of the cancelled receive");
  MPI_Barrier(MPI_COMM_WORLD);
}

static void truncation_is_an_error_and_no_more(int bytes, int expected) {
  unsigned char *outgoing = allocate((size_t)bytes), *incoming = allocate((size_t)bytes);
  MPI_Request send, receive;
  MPI_Comm comm;
  int error_class, token = 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  fill_bytes(outgoing, (size_t)bytes, my_rank);
  memset(incoming, 0xee, (size_t)bytes);
  if (expected) {
    MPI_Irecv(incoming, bytes / 2, MPI_BYTE, left_rank(), 1, comm, &receive);
    MPI_Barrier(comm);
  }
  MPI_Isend(outgoing, bytes, MPI_BYTE, right_rank(), 1, comm, &send);
  if (!expected) {
    MPI_Sendrecv_replace(&token, 1, MPI_INT, right_rank(), 2, left_rank(), 2, comm, MPI_STATUS_IGNORE);
    MPI_Irecv(incoming, bytes / 2, MPI_BYTE, left_rank(), 1, comm, &receive);
  }
  MPI_Error_class(MPI_Wait(&receive, MPI_STATUS_IGNORE), &error_class);
  REQUIRE_EQUAL(error_class, MPI_ERR_TRUNCATE, "the error class of a truncated receive");
  for (int i = bytes / 2; i < bytes; ++i) REQUIRE(incoming[i] == 0xee, "byte %d behind the receive was written", i);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Isend(outgoing, bytes, MPI_BYTE, right_rank(), 3, comm, &send);
  MPI_Recv(incoming, bytes, MPI_BYTE, left_rank(), 3, comm, MPI_STATUS_IGNORE);
  require_bytes(incoming, (size_t)bytes, left_rank(), "the message after a truncated one");
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm);
  free(outgoing);
  free(incoming);
}

// Every message but the first is unexpected, and they are received in the opposite order of their tags.
static void unexpected_messages_are_kept(int messages) {
  MPI_Request* sends = allocate((size_t)messages * sizeof *sends);
  int64_t *values = allocate((size_t)messages * sizeof *values), value;
  for (int i = 0; i < messages; ++i) {
    values[i] = value_of(my_rank, i);
    MPI_Isend(&values[i], 1, MPI_INT64_T, right_rank(), i, MPI_COMM_WORLD, &sends[i]);
  }
  for (int i = messages - 1; i >= 0; --i) {
    MPI_Recv(&value, 1, MPI_INT64_T, left_rank(), i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    REQUIRE_EQUAL(value, value_of(left_rank(), i), "an unexpected message");
  }
  MPI_Waitall(messages, sends, MPI_STATUSES_IGNORE);
  free(values);
  free(sends);
  MPI_Barrier(MPI_COMM_WORLD);
}

// A chain: each rank polls with MPI_Test until the rank before it has sent, which that one does after its own wait.
static void test_loops_end(void) {
  int value = -1, flag = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, left_rank(), 41, MPI_COMM_WORLD, &request);
  if (my_rank == 0) {
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    REQUIRE(!flag, "MPI_Test reports a message that nobody has sent");
    MPI_Send(&my_rank, 1, MPI_INT, right_rank(), 41, MPI_COMM_WORLD);
  }
  while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  REQUIRE_EQUAL(value, left_rank(), "the value after a loop of MPI_Test");
  if (my_rank != 0) MPI_Send(&my_rank, 1, MPI_INT, right_rank(), 41, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

enum { any_count = 12 };

static void post_numbered(int tag_base, int* values, MPI_Request* requests) {
  for (int i = 0; i < any_count; ++i) {
    values[i] = -1;
    MPI_Irecv(&values[i], 1, MPI_INT, left_rank(), tag_base + i, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = any_count - 1; i >= 0; --i) MPI_Send(&i, 1, MPI_INT, right_rank(), tag_base + i, MPI_COMM_WORLD);
}

static void completion_calls_find_every_request(void) {
  MPI_Request requests[any_count];
  int values[any_count], indices[any_count], index, flag, done;
  post_numbered(100, values, requests);
  for (int i = 0; i < any_count; ++i) {
    MPI_Waitany(any_count, requests, &index, MPI_STATUS_IGNORE);
    REQUIRE(index >= 0 && index < any_count && values[index] == index, "MPI_Waitany returned index %d", index);
    values[index] = -2;
  }
  MPI_Waitany(any_count, requests, &index, MPI_STATUS_IGNORE);
  REQUIRE_EQUAL(index, MPI_UNDEFINED, "MPI_Waitany with nothing left");

  post_numbered(200, values, requests);
  for (int total = 0; total < any_count; total += done) {
    MPI_Waitsome(any_count, requests, &done, indices, MPI_STATUSES_IGNORE);
    REQUIRE(done > 0, "MPI_Waitsome returned %d requests", done);
    for (int k = 0; k < done; ++k) REQUIRE_EQUAL(values[indices[k]], indices[k], "a value after MPI_Waitsome");
  }

  post_numbered(300, values, requests);
  for (int total = 0; total < any_count;) {
    MPI_Testany(any_count, requests, &index, &flag, MPI_STATUS_IGNORE);
    if (flag) REQUIRE_EQUAL(values[index], index, "a value after MPI_Testany");
    total += flag;
  }

  post_numbered(400, values, requests);
  for (int total = 0; total < any_count; total += done) {
    MPI_Testsome(any_count, requests, &done, indices, MPI_STATUSES_IGNORE);
    for (int k = 0; k < done; ++k) REQUIRE_EQUAL(values[indices[k]], indices[k], "a value after MPI_Testsome");
  }

  post_numbered(500, values, requests);
  for (flag = 0; !flag;) MPI_Testall(any_count, requests, &flag, MPI_STATUSES_IGNORE);
  for (int i = 0; i < any_count; ++i) REQUIRE_EQUAL(values[i], i, "a value after MPI_Testall");
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  wildcards_keep_order();
  receives_match_in_posting_order();
  static const int sizes[] = {0, 8, 3000, 40000, 1048576};
  for (int s = 0; s < 5; ++s) {
    probe_tells_source_tag_and_size(sizes[s]);
    matched_probe_takes_the_message_out(sizes[s], 0);
    matched_probe_takes_the_message_out(sizes[s], 1);
    if (sizes[s] == 0) continue;
    truncation_is_an_error_and_no_more(sizes[s], 0);
    truncation_is_an_error_and_no_more(sizes[s], 1);
  }
  // LINKx cannot cancel a receive (docs/guide/linkx.md).
  if (argc < 2 || strcmp(argv[1], "without-cancel") != 0) cancelled_receive_takes_nothing();
  unexpected_messages_are_kept(rank_count > 16 ? 300 : 2500);
  test_loops_end();
  completion_calls_find_every_request();
  return check_end("matching");
}
