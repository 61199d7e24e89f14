#include "gpu/pending.hpp"

#include <stdlib.h>
#include <string.h>

namespace dryfly::gpu {

namespace {

void fill(unsigned char* to, const Pattern& pattern, std::uint64_t bytes) {
  if (pattern.count == 1) {
    memset(to, pattern.bytes[0], bytes);
    return;
  }
  for (std::uint64_t at = 0; at < bytes; at += pattern.count) {
    memcpy(to + at, pattern.bytes, pattern.count < bytes - at ? pattern.count : bytes - at);
  }
}

}  // namespace

void move_bytes(const Work& work) {
  if (work.word_bytes != 0) {
    memcpy(work.to, &work.word, work.word_bytes);
  } else if (work.from != nullptr) {
    for (std::uint64_t row = 0; row < work.rows.count; ++row) {
      memmove(static_cast<char*>(work.to) + row * work.rows.to_pitch,
              static_cast<const char*>(work.from) + row * work.rows.from_pitch, work.rows.width);
    }
  } else {
    for (std::uint64_t row = 0; row < work.rows.count; ++row) {
      fill(static_cast<unsigned char*>(work.to) + row * work.rows.to_pitch, work.pattern, work.rows.width);
    }
  }
  free(work.staged);
}

bool Pending::add(const Work& work) {
  if (count_ == room_) {
    const std::size_t room = room_ == 0 ? 64 : 2 * room_;
    auto* more = static_cast<Work*>(realloc(all_, room * sizeof *all_));
    if (more == nullptr) return false;
    all_ = more;
    room_ = room;
  }
  std::size_t index = count_;
  while (index > 0 && all_[index - 1].at_ps > work.at_ps) --index;
  memmove(all_ + index + 1, all_ + index, (count_ - index) * sizeof *all_);
  all_[index] = work;
  ++count_;
  return true;
}

bool Pending::take_due(std::uint64_t now_ps, Work& work) {
  if (count_ == 0 || all_[0].at_ps > now_ps) return false;
  work = all_[0];
  --count_;
  memmove(all_, all_ + 1, count_ * sizeof *all_);
  return true;
}

}  // namespace dryfly::gpu
