/* Two ranks: what libfabric promises of messages. Rank 0 sends, rank 1 receives. */
#include "rank.h"

/* Sizes on both sides of each change of protocol: inline, eager, rendezvous. */
static const size_t sizes[] = {0, 1, 192, 193, 4096, 18433, 18434, 300000};
enum { size_count = sizeof sizes / sizeof sizes[0] };

static char pattern(size_t size, size_t at) { return (char)(at * 31 + size + 7); }

static char* filled(size_t size) {
  char* bytes = malloc(size + 1);
  for (size_t i = 0; i < size; ++i) bytes[i] = pattern(size, i);
  return bytes;
}

static void check_filled(const char* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) CHECK(bytes[i] == pattern(size, i));
}

/* Every size, expected and unexpected, tagged and untagged, arrives in the order sent and unchanged. */
static void order_and_content(int tagged, int expected) {
  char* buffers[size_count];
  if (me == 0) {
    if (expected) barrier();
    for (int i = 0; i < size_count; ++i) {
      buffers[i] = filled(sizes[i]);
      if (tagged) {
        OK(fi_tsend(ep, buffers[i], sizes[i], NULL, 1, 9, NULL));
      } else {
        OK(fi_send(ep, buffers[i], sizes[i], NULL, 1, NULL));
      }
    }
    if (!expected) barrier();
    wait_all(size_count);
  } else {
    if (!expected) barrier();
    for (int i = 0; i < size_count; ++i) {
      buffers[i] = malloc(sizes[i] + 1);
      if (tagged) {
        OK(fi_trecv(ep, buffers[i], sizes[i], NULL, FI_ADDR_UNSPEC, 9, 0, buffers[i]));
      } else {
        OK(fi_recv(ep, buffers[i], sizes[i], NULL, 0, buffers[i]));
      }
    }
    if (expected) barrier();
    /* Matching is in order; completions of different sizes need not be. */
    for (int n = 0; n < size_count; ++n) {
      struct fi_cq_tagged_entry entry;
      int i = 0;
      wait_entry(&entry);
      while (i < size_count && buffers[i] != entry.op_context) ++i;
      CHECK(i < size_count);
      CHECK(entry.len == sizes[i]);
      CHECK(entry.flags == (FI_RECV | (tagged ? FI_TAGGED : FI_MSG)));
      check_filled(buffers[i], sizes[i]);
    }
  }
  barrier();
  for (int i = 0; i < size_count; ++i) free(buffers[i]);
}

/* A receive takes the first message that its mask and source allow, and the completion says which it was. */
static void wildcards(void) {
  if (me == 0) {
    for (uint64_t tag = 0x10; tag < 0x14; ++tag) OK(fi_tinjectdata(ep, &tag, sizeof tag, tag * 2, 1, tag));
  } else {
    const uint64_t wanted[4][2] = {{0x12, 0}, {0x10, 0xf}, {0x03, ~0xfULL & 0xffffffffffffULL}, {0, 0xffffffffffffULL}};
    const uint64_t got[4] = {0x12, 0x10, 0x13, 0x11};
    for (int i = 0; i < 4; ++i) {
      struct fi_cq_tagged_entry entry;
      uint64_t tag = 0;
      fi_addr_t source = FI_ADDR_NOTAVAIL;
      ssize_t answer;
      OK(fi_trecv(ep, &tag, sizeof tag, NULL, i % 2 == 0 ? 0 : FI_ADDR_UNSPEC, wanted[i][0], wanted[i][1], &tag));
      while ((answer = fi_cq_readfrom(cq, &entry, 1, &source)) == -FI_EAGAIN) {
      }
      CHECK(answer == 1);
      CHECK(source == 0);
      CHECK(entry.tag == got[i]);
      CHECK(tag == got[i]);
      CHECK(entry.data == got[i] * 2);
      CHECK(entry.flags == (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA));
    }
  }
  barrier();
}

static struct fi_msg_tagged look_for(uint64_t tag, void* context, struct iovec* part) {
  struct fi_msg_tagged message;
  memset(&message, 0, sizeof message);
  message.msg_iov = part;
  message.iov_count = part == NULL ? 0 : 1;
  message.addr = FI_ADDR_UNSPEC;
  message.tag = tag;
  message.context = context;
  return message;
}

static void peek_claim_discard(void) {
  if (me == 0) {
    for (uint64_t tag = 1; tag <= 4; ++tag) OK(fi_tinject(ep, &tag, sizeof tag, 1, tag));
    char* large = filled(50000);
    OK(fi_tsend(ep, large, 50000, NULL, 1, 5, NULL));
    barrier();
    wait_all(1);
    free(large);
  } else {
    barrier();
    struct fi_context contexts[3];
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    uint64_t value = 0;
    struct iovec part = {&value, sizeof value};
    struct fi_msg_tagged message = look_for(99, &contexts[0], NULL);
    OK(fi_trecvmsg(ep, &message, FI_PEEK | FI_COMPLETION));
    wait_error(&error);
    CHECK(error.err == FI_ENOMSG);
    CHECK(error.op_context == &contexts[0]);

    /* A peek leaves the message where it is. */
    for (int i = 0; i < 2; ++i) {
      message = look_for(1, &contexts[0], NULL);
      OK(fi_trecvmsg(ep, &message, FI_PEEK | FI_COMPLETION));
      wait_entry(&entry);
      CHECK(entry.len == sizeof value && entry.tag == 1);
    }
    /* A claim hides it from everyone but its own receive. */
    message = look_for(1, &contexts[0], NULL);
    OK(fi_trecvmsg(ep, &message, FI_PEEK | FI_CLAIM | FI_COMPLETION));
    wait_entry(&entry);
    message = look_for(1, &contexts[1], NULL);
    OK(fi_trecvmsg(ep, &message, FI_PEEK | FI_COMPLETION));
    wait_error(&error);
    CHECK(error.err == FI_ENOMSG);
    message = look_for(1, &contexts[0], &part);
    OK(fi_trecvmsg(ep, &message, FI_CLAIM | FI_COMPLETION));
    wait_entry(&entry);
    CHECK(entry.op_context == &contexts[0] && value == 1);

    /* Thrown away, at once or after a claim: small and large. */
    message = look_for(2, &contexts[0], NULL);
    OK(fi_trecvmsg(ep, &message, FI_PEEK | FI_DISCARD | FI_COMPLETION));
    wait_entry(&entry);
    for (uint64_t tag = 4; tag <= 5; ++tag) {
      message = look_for(tag, &contexts[1], NULL);
      OK(fi_trecvmsg(ep, &message, FI_PEEK | FI_CLAIM | FI_COMPLETION));
      wait_entry(&entry);
      OK(fi_trecvmsg(ep, &message, FI_CLAIM | FI_DISCARD | FI_COMPLETION));
      wait_entry(&entry);
      CHECK(entry.op_context == &contexts[1]);
    }
    for (uint64_t tag = 1; tag <= 5; ++tag) {
      message = look_for(tag, &contexts[2], NULL);
      OK(fi_trecvmsg(ep, &message, FI_PEEK | FI_COMPLETION));
      if (tag == 3) {
        wait_entry(&entry);
      } else {
        wait_error(&error);
      }
    }
    OK(fi_trecv(ep, &value, sizeof value, NULL, 0, 3, 0, &value));
    wait_entry(&entry);
    CHECK(value == 3);
  }
  barrier();
}

/* 16 messages of 100 bytes into a buffer of 1000 that ends when fewer than 150 are left: after the ninth, which
 * leaves 100, so that the second buffer takes the other seven. */
static void multi_receive(void) {
  enum { messages = 16, bytes = 100, buffer_bytes = 1000, first_takes = 9 };
  if (me == 0) {
    barrier();
    for (int i = 0; i < messages; ++i) {
      char text[bytes];
      memset(text, i + 1, sizeof text);
      OK(fi_inject(ep, text, sizeof text, 1));
    }
  } else {
    static char buffers[2][buffer_bytes];
    struct iovec parts[2] = {{buffers[0], buffer_bytes}, {buffers[1], buffer_bytes}};
    size_t least = 150;
    size_t length = sizeof least;
    OK(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
    least = 0;
    OK(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length));
    CHECK(least == 150);
    for (int i = 0; i < 2; ++i) {
      struct fi_msg message;
      memset(&message, 0, sizeof message);
      message.msg_iov = &parts[i];
      message.iov_count = 1;
      message.addr = FI_ADDR_UNSPEC;
      message.context = buffers[i];
      OK(fi_recvmsg(ep, &message, FI_MULTI_RECV | FI_COMPLETION));
    }
    barrier();
    int taken = 0;
    int ended = 0;
    while (taken < messages) {
      struct fi_cq_tagged_entry entry;
      wait_entry(&entry);
      if (entry.flags & FI_RECV) {
        const int buffer = taken < first_takes ? 0 : 1;
        const char* place = buffers[buffer] + (taken - (buffer == 0 ? 0 : first_takes)) * bytes;
        CHECK(entry.op_context == buffers[buffer]);
        CHECK(entry.buf == place);
        CHECK(entry.len == bytes);
        for (int i = 0; i < bytes; ++i) CHECK(place[i] == taken + 1);
        ++taken;
      }
      if (entry.flags & FI_MULTI_RECV) {
        CHECK(entry.op_context == buffers[0]);
        ++ended;
      }
    }
    CHECK(ended == 1);
    struct fi_cq_err_entry error;
    OK(fi_cancel(&ep->fid, buffers[1]));
    wait_error(&error);
    CHECK(error.err == FI_ECANCELED && error.op_context == buffers[1]);
  }
  barrier();
}

static void cancelling(void) {
  if (me == 1) {
    char byte;
    struct fi_context context;
    struct fi_cq_err_entry error;
    OK(fi_trecv(ep, &byte, 1, NULL, 0, 0x55, 0, &context));
    OK(fi_cancel(&ep->fid, &context));
    wait_error(&error);
    CHECK(error.err == FI_ECANCELED);
    CHECK(error.op_context == &context);
    CHECK(fi_cancel(&ep->fid, &context) == -FI_ENOENT);
  }
  barrier();
}

/* Inline, eager and rendezvous messages that are too long for their buffer. */
static void truncation(void) {
  static const size_t lengths[] = {100, 10000, 100000};
  for (int i = 0; i < 3; ++i) {
    if (me == 0) {
      char* bytes = filled(lengths[i]);
      OK(fi_tsend(ep, bytes, lengths[i], NULL, 1, 6, NULL));
      wait_all(1);
      free(bytes);
    } else {
      char buffer[60];
      struct fi_cq_err_entry error;
      memset(buffer, 0x5a, sizeof buffer);
      OK(fi_trecv(ep, buffer, 50, NULL, 0, 6, 0, buffer));
      wait_error(&error);
      CHECK(error.err == FI_ETRUNC);
      CHECK(error.op_context == buffer);
      CHECK(error.len == 50);
      CHECK(error.olen == lengths[i] - 50);
      for (size_t at = 0; at < 50; ++at) CHECK(buffer[at] == pattern(lengths[i], at));
      for (size_t at = 50; at < sizeof buffer; ++at) CHECK(buffer[at] == 0x5a);
    }
  }
  barrier();
}

/* An inject takes its buffer before it returns. */
static void inject_reuses_its_buffer(void) {
  enum { messages = 50 };
  if (me == 0) {
    uint64_t value;
    for (value = 0; value < messages; ++value) OK(fi_tinject(ep, &value, sizeof value, 1, 7));
  } else {
    for (uint64_t i = 0; i < messages; ++i) {
      uint64_t value = ~0ULL;
      OK(fi_trecv(ep, &value, sizeof value, NULL, 0, 7, 0, &value));
      wait_all(1);
      CHECK(value == i);
    }
  }
  barrier();
}

/* Each send and each receive counts once, reported or not. */
static void counting(void) {
  const uint64_t sent = fi_cntr_read(sends);
  const uint64_t received = fi_cntr_read(receives);
  if (me == 0) {
    OK(fi_tinject(ep, "a", 1, 1, 8));
    OK(fi_tsend(ep, "b", 1, NULL, 1, 8, NULL));
    OK(fi_cntr_wait(sends, sent + 2, -1));
    wait_all(1);
  } else {
    char two[2];
    OK(fi_trecv(ep, &two[0], 1, NULL, 0, 8, 0, NULL));
    OK(fi_trecv(ep, &two[1], 1, NULL, 0, 8, 0, NULL));
    while (fi_cntr_read(receives) < received + 2) {
    }
    CHECK(memcmp(two, "ab", 2) == 0);
    wait_all(2);
  }
  CHECK(fi_cntr_readerr(sends) == 0);
  barrier();
}

int main(void) {
  start();
  for (int tagged = 0; tagged < 2; ++tagged) {
    for (int expected = 0; expected < 2; ++expected) order_and_content(tagged, expected);
  }
  wildcards();
  peek_claim_discard();
  multi_receive();
  cancelling();
  truncation();
  inject_reuses_its_buffer();
  counting();
  finish("messages");
  return 0;
}
