// One large message to the right neighbour over a communicator with MPICH's hints on NICs: `plain`, `striping`,
// `hashing` (by tag: 32 messages), or `pref K` (the NIC called cxiK). The data is checked; which NICs it took is in the
// counters of the run.
#include "check.h"

enum { bytes = 2 << 20, messages = 32 };

static MPI_Comm communicator(const char* mode, const char* argument) {
  MPI_Comm made;
  MPI_Info hints;
  MPI_Info_create(&hints);
  if (strcmp(mode, "striping") == 0) MPI_Info_set(hints, "enable_multi_nic_striping", "true");
  if (strcmp(mode, "pref") == 0) MPI_Info_set(hints, "multi_nic_pref_nic", argument);
  if (strcmp(mode, "hashing") == 0) {
    MPI_Info_set(hints, "enable_multi_nic_hashing", "true");
    MPI_Info_set(hints, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(hints, "mpi_assert_no_any_source", "true");
  }
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, hints, &made);
  MPI_Info_free(&hints);
  return made;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  const char* mode = argc > 1 ? argv[1] : "plain";
  MPI_Comm over = communicator(mode, argc > 2 ? argv[2] : "");
  char* sent = allocate(bytes);
  char* received = allocate(bytes);
  fill_bytes(sent, bytes, my_rank);
  const int parts = strcmp(mode, "hashing") == 0 ? messages : 1;
  const size_t part = bytes / (size_t)parts;
  for (int tag = 0; tag < parts; ++tag) {
    const size_t at = part * (size_t)tag;
    MPI_Sendrecv(sent + at, (int)part, MPI_BYTE, right_rank(), tag, received + at, (int)part, MPI_BYTE, left_rank(),
                 tag, over, MPI_STATUS_IGNORE);
  }
  require_bytes(received, bytes, left_rank(), "the message");
  MPI_Comm_free(&over);
  return check_end("nics");
}
