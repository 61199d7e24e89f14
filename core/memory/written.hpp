// Who wrote what lies in memory that the ranks of a node share.
//
// Models docs/model/on-node.md#places: what a core copies comes from the core that has written it. A copy into shared
// memory marks the line that it begins in and every line at the beginning of a page; who copies out of there finds the
// mark of the first of these that lies in what is copied. So what is found is said of these very bytes, and does not
// depend on what lies beside them. Kept for as many lines as there is room for; of further ones nobody knows.
//
// `Place` is any small value. All zeros is empty, so that it may lie in memory that ranks share. Whoever uses it goes
// in turn.
#pragma once

#include <array>
#include <cstdint>

namespace dryfly {

// A piece of memory: which file it is a mapping of, and where in that.
struct SharedPiece {
  std::uint64_t file;
  std::uint64_t offset;
};

template <class Place>
class WrittenMemory {
 public:
  static constexpr std::uint64_t line_bytes = 64;
  static constexpr std::uint64_t page_bytes = 4096;
  static constexpr std::uint64_t capacity = std::uint64_t{1} << 16;

  // There are bytes.
  void write(const SharedPiece& piece, std::uint64_t bytes, const Place& by) {
    mark(name_of(piece.file, piece.offset), by);
    for (std::uint64_t at = page_from(piece.offset); at < piece.offset + bytes; at += page_bytes) {
      mark(name_of(piece.file, at), by);
    }
  }
  // Null: nobody knows.
  const Place* writer(const SharedPiece& piece, std::uint64_t bytes) const {
    if (const Place* found = find(name_of(piece.file, piece.offset)); found != nullptr) return found;
    const std::uint64_t page = page_from(piece.offset);
    return page < piece.offset + bytes ? find(name_of(piece.file, page)) : nullptr;
  }

 private:
  struct Line {
    std::uint64_t name;  // not zero where there is one
    Place writer;
  };

  static std::uint64_t page_from(std::uint64_t offset) { return (offset + page_bytes - 1) / page_bytes * page_bytes; }
  static std::uint64_t name_of(std::uint64_t file, std::uint64_t offset) {
    return mixed(file ^ mixed(offset / line_bytes + 1)) | 1;
  }
  const Place* find(std::uint64_t name) const {
    for (std::uint64_t at = name % capacity; lines_[at].name != 0; at = (at + 1) % capacity) {
      if (lines_[at].name == name) return &lines_[at].writer;
    }
    return nullptr;
  }
  // Whether there is room depends on how many there are alone, and not on their names, which differ from run to run.
  void mark(std::uint64_t name, const Place& by) {
    std::uint64_t at = name % capacity;
    while (lines_[at].name != 0 && lines_[at].name != name) at = (at + 1) % capacity;
    if (lines_[at].name == 0) {
      if (count_ == capacity / 4 * 3) return;
      ++count_;
    }
    lines_[at] = {name, by};
  }
  // SplitMix64.
  static constexpr std::uint64_t mixed(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
  }

  std::uint64_t count_;
  std::array<Line, capacity> lines_;
};

}  // namespace dryfly
