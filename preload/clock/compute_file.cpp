#include "preload/clock/compute_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rank/write_all.hpp"

namespace dryfly::preload {

namespace {

constexpr char format_name[8] = {'d', 'f', 'g', 'a', 'p', 's', '0', '2'};
constexpr std::uint64_t end_mark = ~std::uint64_t{0};

bool file_path(char (&path)[1024], const char* directory) {
  if (directory == nullptr || *directory == 0) return false;
  return snprintf(path, sizeof path, "%s/rank-%s.bin", directory, rank_name()) < static_cast<int>(sizeof path);
}

}  // namespace

const char* rank_name() {
  const char* name = getenv("DRYFLY_RANK");
  if (name == nullptr) name = getenv("PMI_RANK");
  return name != nullptr ? name : "?";
}

void GapWriter::open(const char* directory) {
  char path[1024];
  if (!file_path(path, directory)) return;
  file_ = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0 || !rank::write_all(file_, format_name, sizeof format_name)) {
    fprintf(stderr, "dryfly: computing is not recorded: %s: %s\n", path, strerror(errno));
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }
}

void GapWriter::flush() {
  if (file_ >= 0 && !rank::write_all(file_, records_, count_ * sizeof(GapRecord))) {
    fprintf(stderr, "dryfly: the recording of rank %s is incomplete: %s\n", rank_name(), strerror(errno));
    ::close(file_);
    file_ = -1;
  }
  count_ = 0;
}

void GapWriter::add(GapPoint point, std::uint64_t added_ps) {
  if (file_ < 0) return;
  records_[count_++] = {point, added_ps};
  if (count_ == capacity) flush();
}

void GapWriter::close(std::uint32_t calls) {
  add({.calls = calls}, end_mark);
  flush();
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

bool GapReader::open(const char* directory) {
  char path[1024];
  if (!file_path(path, directory)) return false;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat info{};
  const bool has_size = fstat(file, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof format_name);
  void* mapped =
      has_size ? mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  ::close(file);
  if (mapped == MAP_FAILED || memcmp(mapped, format_name, sizeof format_name) != 0) return false;
  records_ = reinterpret_cast<const GapRecord*>(static_cast<const char*>(mapped) + sizeof format_name);
  count_ = (static_cast<std::size_t>(info.st_size) - sizeof format_name) / sizeof(GapRecord);
  if (count_ > 0 && records_[count_ - 1].added_ps == end_mark) {
    calls_ = records_[--count_].point.calls;
    is_complete_ = true;
  }
  return true;
}

std::uint64_t GapReader::take(GapPoint look) {
  return next_ < count_ && records_[next_].point == look ? records_[next_++].added_ps : 0;
}

std::uint64_t GapReader::take_up_to(std::uint32_t call) {
  std::uint64_t added_ps = 0;
  while (next_ < count_ && records_[next_].point.calls <= call) added_ps += records_[next_++].added_ps;
  return added_ps;
}

bool GapReader::ends_before(std::uint32_t call) const { return is_complete_ ? call >= calls_ : next_ == count_; }

bool GapReader::has_more(std::uint32_t calls) const { return next_ < count_ || (is_complete_ && calls < calls_); }

}  // namespace dryfly::preload
