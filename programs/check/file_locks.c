// file_locks KIND FILE: rank 0 has a lock of FILE while it talks to the last rank, and rank 1 waits for the lock
// meanwhile. KIND is fcntl, ofd, flock or lockf; or io: ranks read and write parts of FILE by
// MPI_File_iread_at and MPI_File_iwrite_at, for which a library may lock more than these.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "check.h"

enum { part = 4096, rounds = 20, talks = 200 };

static const char* kind;
static int file;

static int set_lock(int take) {
  struct flock whole = {.l_type = take ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET};
  if (strcmp(kind, "fcntl") == 0) return fcntl(file, F_SETLKW, &whole);
  if (strcmp(kind, "ofd") == 0) return fcntl(file, F_OFD_SETLKW, &whole);
  if (strcmp(kind, "flock") == 0) return flock(file, take ? LOCK_EX : LOCK_UN);
  return lockf(file, take ? F_LOCK : F_ULOCK, 0);
}

static void wait_for_the_lock(void) {
  int talked = 0;
  const int last = rank_count - 1;
  if (my_rank == 0) {
    REQUIRE(set_lock(1) == 0, "cannot lock");
    MPI_Send(&talked, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    for (; talked < talks; ++talked) {
      MPI_Send(&talked, 1, MPI_INT, last, 1, MPI_COMM_WORLD);
      MPI_Recv(&talked, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    REQUIRE(pwrite(file, &talked, sizeof talked, 0) == sizeof talked, "cannot write");
    REQUIRE(set_lock(0) == 0, "cannot unlock");
  } else if (my_rank == 1) {
    MPI_Recv(&talked, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    REQUIRE(set_lock(1) == 0, "cannot lock");
    REQUIRE(pread(file, &talked, sizeof talked, 0) == sizeof talked && talked == talks, "the lock came too soon");
    REQUIRE(set_lock(0) == 0, "cannot unlock");
  } else if (my_rank == last) {
    for (int i = 0; i < talks; ++i) {
      MPI_Recv(&talked, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&talked, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
  }
}

// What others are about to write is read as it happens to be, and only a rank's own part is looked at.
static void read_and_write(const char* name) {
  char* own = allocate(part);
  char* read = allocate(part);
  MPI_File all;
  MPI_Request request;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &all);
  MPI_File_set_size(all, (MPI_Offset)part * rank_count);
  for (int round = 0; round < rounds; ++round) {
    fill_bytes(own, part, my_rank + round);
    MPI_File_iread_at(all, (MPI_Offset)part * ((my_rank + round) % rank_count), read, part, MPI_CHAR, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(all, (MPI_Offset)part * my_rank, own, part, MPI_CHAR, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_File_read_at(all, (MPI_Offset)part * my_rank, read, part, MPI_CHAR, MPI_STATUS_IGNORE);
  require_bytes(read, part, my_rank + rounds - 1, "what was written last");
  MPI_File_close(&all);
  free(own);
  free(read);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE(argc == 3 && rank_count >= 3, "a kind of lock, a file and three ranks are needed");
  kind = argv[1];
  file = open(argv[2], O_RDWR | O_CREAT, 0600);
  REQUIRE(file >= 0, "cannot open the file");
  if (strcmp(kind, "io") == 0) {
    read_and_write(argv[2]);
  } else {
    wait_for_the_lock();
  }
  close(file);
  return check_end("file_locks");
}
