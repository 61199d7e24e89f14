// The recording of a rank's computing, DIRECTORY/rank-N.bin: an 8-byte name of the format, then pairs of 64-bit
// numbers in the byte order of the machine: the number of the point of observation, rising, and the picoseconds added
// there. The last pair is (number of points in all, all ones); a file without it is of a run that did not end well.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::preload {

struct GapRecord {
  std::uint64_t point;
  std::uint64_t added_ps;
};

// The rank as the environment names it (DRYFLY_RANK, PMI_RANK), for file names and messages.
const char* rank_name();

class GapWriter {
 public:
  // Without a directory nothing is recorded. A file that cannot be written is reported on stderr, once.
  void open(const char* directory);
  void add(std::uint64_t point, std::uint64_t added_ps);
  void close(std::uint64_t points);

 private:
  void flush();

  static constexpr std::size_t capacity = 1024;
  int file_ = -1;
  std::size_t count_ = 0;
  GapRecord records_[capacity] = {};
};

class GapReader {
 public:
  enum class Answer { nothing_here, added, past_end };

  // False if there is no readable recording.
  bool open(const char* directory);
  // What was added at `point`; points must rise.
  Answer take(std::uint64_t point, std::uint64_t& added_ps);
  // Does the recording go on after `points` points?
  bool has_more(std::uint64_t points) const;

 private:
  const GapRecord* records_ = nullptr;  // mapped
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::uint64_t points_ = 0;
  bool is_complete_ = false;
};

}  // namespace dryfly::preload
