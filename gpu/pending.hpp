// Work that was put into streams and whose instant has not come: it is done then, in the order of the ends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::gpu {

// Rows of bytes, each so many bytes behind the one before it.
struct Rows {
  std::uint64_t width;
  std::uint64_t count;
  std::uint64_t to_pitch;
  std::uint64_t from_pitch;
};

// What a fill repeats.
struct Pattern {
  static constexpr std::uint64_t most = 16;
  unsigned char bytes[most];
  std::uint64_t count;
};

// A copy, a fill (`from` is null), a call of `function` with `to`, or a word that is written.
struct Work {
  void* to;
  const void* from;
  Rows rows;
  std::uint64_t at_ps;
  Pattern pattern;
  void* staged;  // what the bytes are in until then, to be given back; or null
  void (*function)(void*);
  bool of_host;              // function: it is the program's, and calls what it likes
  std::uint32_t word_bytes;  // 4 or 8: the word is written; else 0
  std::uint64_t word;
};

// Does a copy or a fill, and gives back what it was staged in.
void move_bytes(const Work& work);

// Not safe to call by several threads; the runtime has one lock.
class Pending {
 public:
  // False where there is no memory for it.
  bool add(const Work& work);
  // The first whose instant has come is taken out; false: there is none.
  bool take_due(std::uint64_t now_ps, Work& work);
  bool is_empty() const { return count_ == 0; }
  // Null: there is none.
  const Work* first() const { return count_ != 0 ? &all_[0] : nullptr; }

 private:
  Work* all_;  // by their ends
  std::size_t count_;
  std::size_t room_;
};

}  // namespace dryfly::gpu
