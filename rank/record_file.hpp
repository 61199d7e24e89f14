// A file of equal records that a rank writes for `dryfly run --record` and `--trace`, DIRECTORY/NAME-RANK.bin: an
// 8-byte name of the format, then the records as they lie in memory. Only where an environment variable names the
// directory. A disk that is full is reported on stderr, once, and the file removed.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>

#include "rank/write_all.hpp"

namespace dryfly::rank {

template <class Record>
class RecordFile {
 public:
  // `what` is in it, for the sentence about a full disk: "the MPI calls". Both names have to outlive it.
  constexpr RecordFile(const char* what, const char* name, const char (&format)[9])
      : what_(what), name_(name), format_(format) {}

  bool is_open() const { return file_ >= 0; }
  // Once; whether it is open then.
  bool open(const char* variable, const char* rank) {
    const char* directory = getenv(variable);
    if (directory == nullptr || *directory == 0) return false;
    const int length = snprintf(path_, sizeof path_, "%s/%s-%s.bin", directory, name_, rank);
    if (length >= static_cast<int>(sizeof path_)) return false;
    file_ = ::open(path_, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0 || !write_all(file_, format_, 8)) give_up();
    return is_open();
  }
  void add(const Record& record) {
    records_[count_++] = record;
    if (count_ == capacity) flush();
  }
  // Writes what has been collected.
  void flush() {
    if (is_open() && !write_all(file_, records_, count_ * sizeof(Record))) give_up();
    count_ = 0;
  }
  void close() {
    flush();
    if (is_open()) ::close(file_);
    file_ = -1;
  }

 private:
  static constexpr std::size_t capacity = 512;

  void give_up() {
    fprintf(stderr, "dryfly: %s are not recorded: %s: %s\n", what_, path_, strerror(errno));
    if (is_open()) {
      ::close(file_);
      // Not by unlink(): that is interposed, for segments of shared memory.
      unlinkat(AT_FDCWD, path_, 0);
    }
    file_ = -1;
  }

  const char* what_;
  const char* name_;
  const char* format_;
  int file_ = -1;
  std::size_t count_ = 0;
  Record records_[capacity] = {};
  char path_[1024] = {};
};

}  // namespace dryfly::rank
