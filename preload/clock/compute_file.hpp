// The recording of a rank's computing, DIRECTORY/rank-N.bin: an 8-byte name of the format, then records in the byte
// order of the machine: the point of observation, rising, and the picoseconds added there. The last record has the
// number of calls in all, and all ones; a file without it is of a run that did not end well.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::preload {

// How many calls of MPI the rank has made that it makes however long its messages take, and how often it has looked
// at something behind the last one: polls, clocks. How often that is may be another number in the next run, so the
// next call itself has a number of its own.
struct GapPoint {
  static constexpr std::uint32_t at_call = ~std::uint32_t{0};
  std::uint32_t calls = 0;
  std::uint32_t looks = 0;
  bool operator==(const GapPoint&) const = default;
};

struct GapRecord {
  GapPoint point;
  std::uint64_t added_ps;
};

// The rank as the environment names it (DRYFLY_RANK, PMI_RANK), for file names and messages.
const char* rank_name();

class GapWriter {
 public:
  // Without a directory nothing is recorded. A file that cannot be written is reported on stderr, once.
  void open(const char* directory);
  void add(GapPoint point, std::uint64_t added_ps);
  void close(std::uint32_t calls);

 private:
  void flush();

  static constexpr std::size_t capacity = 1024;
  int file_ = -1;
  std::size_t count_ = 0;
  GapRecord records_[capacity] = {};
};

class GapReader {
 public:
  // False if there is no readable recording.
  bool open(const char* directory);
  // What was added at that look; points must rise.
  std::uint64_t take(GapPoint look);
  // What is left of what was added before that call, and at it: the rank may have looked less often than when it was
  // recorded.
  std::uint64_t take_up_to(std::uint32_t call);
  // The recording has no such call.
  bool ends_before(std::uint32_t call) const;
  // It goes on after so many calls.
  bool has_more(std::uint32_t calls) const;

 private:
  const GapRecord* records_ = nullptr;  // mapped
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::uint32_t calls_ = 0;
  bool is_complete_ = false;
};

}  // namespace dryfly::preload
