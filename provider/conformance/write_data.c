/* Two ranks: writes that carry data for the target's queue (fi_writedata), which the cxi provider has with
 * FI_CXI_ENABLE_WRITEDATA and keys of its own. */
#include "rank.h"

static uint64_t key_of_other; /* of the region, as the other rank was given it */
static const size_t sizes[] = {0, 8, 192, 193, 5000, 300000};
enum { size_count = sizeof sizes / sizeof sizes[0] };

static void exchange_keys(void) {
  uint64_t own = fi_mr_key(region);
  MPI_Sendrecv(&own, 8, MPI_BYTE, other, 0, &key_of_other, 8, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static char byte_at(size_t i) { return (char)(i * 7 + i / 256); }

/* The entry comes when the bytes are there, with the region's context, and says where they are and who wrote them. */
static void an_entry_tells_of_each_write(void) {
  struct fi_cq_tagged_entry entry;
  fi_addr_t source;
  ssize_t got;
  for (int i = 0; i < size_count; ++i) {
    const uint64_t offset = 100 + (uint64_t)i;
    barrier();
    if (me == 0) {
      char* bytes = malloc(sizes[i] + 1);
      for (size_t b = 0; b < sizes[i]; ++b) bytes[b] = byte_at(b);
      OK(fi_writedata(ep, bytes, sizes[i], NULL, 0xabcdef0123456789ULL + (uint64_t)i, 1, offset, key_of_other, bytes));
      wait_entry(&entry);
      CHECK(entry.op_context == bytes);
      CHECK(entry.flags == (FI_RMA | FI_WRITE));
      free(bytes);
    } else {
      memset(memory, 0, region_bytes);
      while ((got = fi_cq_readfrom(cq, &entry, 1, &source)) == -FI_EAGAIN) {
      }
      CHECK(got == 1);
      CHECK(entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
      CHECK(entry.data == 0xabcdef0123456789ULL + (uint64_t)i);
      CHECK(entry.len == sizes[i]);
      CHECK(entry.buf == memory + offset);
      CHECK(source == 0);
      for (size_t b = 0; b < sizes[i]; ++b) CHECK(memory[offset + b] == byte_at(b));
    }
    barrier();
  }
}

/* Injected ones too, in order; a plain write between them makes no entry, and one that is refused neither. */
static void only_data_makes_entries(void) {
  enum { writes = 20 };
  struct fi_cq_tagged_entry entry;
  struct fi_cq_err_entry error;
  if (me == 0) {
    for (uint64_t i = 0; i < writes; ++i) {
      OK(fi_inject_writedata(ep, &i, sizeof i, i, 1, 8 * i, key_of_other));
      OK(fi_inject_write(ep, &i, sizeof i, 1, 8 * (i + writes), key_of_other));
    }
    OK(fi_writedata(ep, &entry, 8, NULL, 1, 1, region_bytes - 4, key_of_other, &entry));
    wait_error(&error);
    CHECK(error.op_context == &entry);
  } else {
    for (uint64_t i = 0; i < writes; ++i) {
      uint64_t there;
      wait_entry(&entry);
      CHECK(entry.data == i);
      memcpy(&there, entry.buf, sizeof there);
      CHECK(there == i);
    }
  }
  barrier();
}

int main(void) {
  setenv("FI_CXI_ENABLE_WRITEDATA", "1", 1);
  region_mode |= FI_MR_PROV_KEY;
  start();
  exchange_keys();
  an_entry_tells_of_each_write();
  only_data_makes_entries();
  finish("write_data");
  return 0;
}
