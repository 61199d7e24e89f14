// The ways out of a process behind MPI_Finalize: `ends WAY`. All but the last are good ends.
#define _GNU_SOURCE
#include <unistd.h>

#include "check.h"

static void by_exit(void) { exit(0); }
static void by_underscore_exit(void) { _exit(0); }
static void by_quick_exit(void) { quick_exit(0); }
static void by_exec(void) { execl("/bin/sh", "sh", "-c", "exit 0", (char*)NULL); }
// Also what the library has open.
static void by_exit_with_all_closed(void) {
  for (int descriptor = 3; descriptor < 64; ++descriptor) close(descriptor);
  _exit(0);
}
static void with_status(void) { _exit(3); }

static const struct {
  const char* name;
  void (*leave)(void);
} ways[] = {
    {"exit", by_exit}, {"_exit", by_underscore_exit},       {"quick_exit", by_quick_exit},
    {"exec", by_exec}, {"closed", by_exit_with_all_closed}, {"status3", with_status},
};

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  check_end("ends");
  for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; ++i) {
    if (strcmp(argv[1], ways[i].name) == 0) ways[i].leave();
  }
  return 9;
}
