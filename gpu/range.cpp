#include "gpu/range.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

namespace dryfly::gpu {

namespace {

constexpr std::uint64_t alignment = 512;
constexpr std::uint64_t page_bytes = 4096;

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

bool in_one(std::uint64_t chunk_bytes, std::uint64_t one, std::uint64_t other) {
  return one / chunk_bytes == other / chunk_bytes;
}

}  // namespace

bool Range::map_file() {
  void* const wanted = reinterpret_cast<void*>(base_);
  mapped_ = mmap(wanted, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_, 0) == wanted;
  if (!mapped_) close(file_);
  return mapped_;
}

bool Range::map() {
  if (mapped_) return true;
  file_ = memfd_create("dryfly-gpu", MFD_CLOEXEC);
  if (file_ < 0) return false;
  if (ftruncate(file_, static_cast<off_t>(capacity_ + sizeof(Shown))) != 0) {
    close(file_);
    return false;
  }
  return map_file();
}

bool Range::adopt(int file, std::uint64_t capacity) {
  file_ = file;
  capacity_ = capacity;
  return map_file();
}

Shown* Range::shown() {
  if (shown_ != nullptr || !map()) return shown_;
  void* const table =
      mmap(nullptr, sizeof(Shown), PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(capacity_));
  if (table == MAP_FAILED) return nullptr;
  shown_ = static_cast<Shown*>(table);
  if (getrandom(&shown_->range, sizeof shown_->range, 0) != sizeof shown_->range) shown_->range = base_;
  return shown_;
}

bool Range::grow() {
  if (count_ < room_) return true;
  const std::size_t room = room_ == 0 ? 64 : 2 * room_;
  auto* more = static_cast<Allocation*>(realloc(all_, room * sizeof *all_));
  if (more == nullptr) return false;
  all_ = more;
  room_ = room;
  return true;
}

Allocation* Range::insert(std::size_t index, std::uint64_t start, std::uint64_t bytes) {
  memmove(all_ + index + 1, all_ + index, (count_ - index) * sizeof *all_);
  static std::uint64_t ids = 0;
  all_[index] = {};
  all_[index].start = start;
  all_[index].bytes = bytes;
  all_[index].id = ++ids;
  ++count_;
  if (is_alone(all_[index])) used_ += rounded(bytes, chunk_bytes);
  return &all_[index];
}

void Range::erase(std::size_t index) {
  if (is_alone(all_[index])) used_ -= rounded(all_[index].bytes, chunk_bytes);
  --count_;
  memmove(all_ + index, all_ + index + 1, (count_ - index) * sizeof *all_);
}

bool Range::allocate(std::uint64_t bytes, std::uint64_t& start, std::uint64_t wanted_alignment) {
  if (bytes == 0 || bytes > capacity_ || !map() || !grow()) return false;
  const bool is_whole = !is_short(bytes);
  const std::uint64_t least = is_whole ? chunk_bytes : alignment;
  const std::uint64_t size = rounded(bytes, least);
  const std::uint64_t to = wanted_alignment > least ? wanted_alignment : least;
  // A short one lies in one chunk, and in none of a long one's.
  const auto from = [&](std::uint64_t address) {
    const std::uint64_t at = rounded(address, to);
    return is_whole || in_one(chunk_bytes, at, at + size - 1) ? at : rounded(rounded(at, chunk_bytes), to);
  };
  std::uint64_t at = from(base_);
  std::size_t index = 0;
  for (; index < count_ && (all_[index].start < at || all_[index].start - at < size); ++index) {
    const std::uint64_t end = all_[index].start + all_[index].bytes;
    at = from(is_short(all_[index].bytes) ? end : rounded(end, chunk_bytes));
  }
  if (at + size > base_ + capacity_) return false;
  insert(index, at, bytes);
  start = at;
  return true;
}

bool Range::is_alone(const Allocation& allocation) const {
  if (!is_short(allocation.bytes)) return true;
  const std::size_t index = static_cast<std::size_t>(&allocation - all_);
  const auto is_beside = [&](std::size_t other) {
    return in_one(chunk_bytes, all_[other].start, allocation.start) && is_short(all_[other].bytes);
  };
  return (index == 0 || !is_beside(index - 1)) && (index + 1 == count_ || !is_beside(index + 1));
}

bool Range::free(std::uint64_t start) {
  const Allocation* found = at(start);
  if (found == nullptr || found->start != start) return false;
  if (found->shown != 0) shown_->serials[found->shown - 1] = 0;
  const std::uint64_t end = start + found->bytes;
  const std::uint64_t first = rounded(start, page_bytes);
  const std::uint64_t last = end / page_bytes * page_bytes;
  if (first < last) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first - base_),
              static_cast<off_t>(last - first));
  }
  erase(static_cast<std::size_t>(found - all_));
  return true;
}

Allocation* Range::add(std::uint64_t start, std::uint64_t bytes) {
  if (!grow()) return nullptr;
  std::size_t index = 0;
  while (index < count_ && all_[index].start < start) ++index;
  return insert(index, start, bytes);
}

void Range::remove(Allocation* allocation) {
  erase(static_cast<std::size_t>(allocation - all_));
  if (count_ != 0) return;
  mmap(reinterpret_cast<void*>(base_), capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
  close(file_);
  mapped_ = false;
}

const Allocation* Range::at(std::uint64_t address) const {
  std::size_t low = 0;
  std::size_t high = count_;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (all_[middle].start <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return nullptr;
  const Allocation& found = all_[low - 1];
  return address < found.start + found.bytes ? &found : nullptr;
}

}  // namespace dryfly::gpu
