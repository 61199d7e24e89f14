#include "preload/mpi/call_record.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/clock/compute_file.hpp"

namespace dryfly::preload {

namespace {

constexpr char format_name[8] = {'d', 'f', 'c', 'a', 'l', 'l', '0', '1'};
constexpr std::size_t capacity = 512;

struct Recorder {
  int file = -1;
  std::size_t count = 0;
  CallRecord records[capacity] = {};
  char path[1024] = {};
};
constinit Recorder recorder;

bool write_all(const void* bytes, std::size_t length) {
  const char* at = static_cast<const char*>(bytes);
  while (length > 0) {
    const ssize_t written = write(recorder.file, at, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    length -= static_cast<std::size_t>(written);
  }
  return true;
}

void give_up() {
  fprintf(stderr, "dryfly: the MPI calls of rank %s are not recorded: %s: %s\n", rank_name(), recorder.path,
          strerror(errno));
  if (recorder.file >= 0) {
    ::close(recorder.file);
    // Not by unlink(): that is interposed, for segments of shared memory.
    unlinkat(AT_FDCWD, recorder.path, 0);
  }
  recorder.file = -1;
}

void flush() {
  if (recorder.file >= 0 && !write_all(recorder.records, recorder.count * sizeof(CallRecord))) give_up();
  recorder.count = 0;
}

}  // namespace

void open_call_record() {
  const char* directory = getenv("DRYFLY_CALL_RECORD");
  if (directory == nullptr || *directory == 0) return;
  const int length = snprintf(recorder.path, sizeof recorder.path, "%s/calls-%s.bin", directory, rank_name());
  if (length >= static_cast<int>(sizeof recorder.path)) return;
  recorder.file = ::open(recorder.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (recorder.file < 0 || !write_all(format_name, sizeof format_name)) give_up();
}

bool calls_are_recorded() { return recorder.file >= 0; }

void record_call(const CallRecord& record) {
  recorder.records[recorder.count++] = record;
  if (recorder.count == capacity) flush();
}

void close_call_record() {
  flush();
  if (recorder.file >= 0) ::close(recorder.file);
  recorder.file = -1;
}

}  // namespace dryfly::preload
