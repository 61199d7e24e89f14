#include "gpu/memory.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dryfly::gpu {

namespace {

// Below what Linux gives to libraries and stacks, above what it gives to heaps of programs at a fixed address.
constexpr std::uint64_t first_base = 0x2000'0000'0000;
constexpr unsigned range_bits = 40;  // 1 TiB for each
constexpr std::uint64_t alignment = 512;
constexpr std::uint64_t page_bytes = 4096;

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }
std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

bool Range::map() {
  if (mapped_) return true;
  file_ = memfd_create("dryfly-gpu", MFD_CLOEXEC);
  if (file_ < 0) return false;
  void* const wanted = reinterpret_cast<void*>(base_);
  if (ftruncate(file_, static_cast<off_t>(capacity_)) != 0 ||
      mmap(wanted, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file_, 0) !=
          wanted) {
    close(file_);
    return false;
  }
  mapped_ = true;
  return true;
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

bool Range::allocate(std::uint64_t bytes, std::uint64_t& start) {
  if (bytes == 0 || bytes > capacity_ || !map() || !grow()) return false;
  const std::uint64_t size = rounded(bytes, alignment);
  std::uint64_t at = base_;
  std::size_t index = 0;
  for (; index < count_ && all_[index].start - at < size; ++index)
    at = all_[index].start + rounded(all_[index].bytes, alignment);
  if (at + size > base_ + capacity_) return false;
  memmove(all_ + index + 1, all_ + index, (count_ - index) * sizeof *all_);
  all_[index] = {at, bytes};
  ++count_;
  used_ += size;
  start = at;
  return true;
}

bool Range::free(std::uint64_t start) {
  const Allocation* found = at(start);
  if (found == nullptr || found->start != start) return false;
  const auto index = static_cast<std::size_t>(found - all_);
  // Whole pages of it alone; neighbours may share the first and the last.
  const std::uint64_t end = start + found->bytes;
  const std::uint64_t first = rounded(start, page_bytes);
  const std::uint64_t last = end / page_bytes * page_bytes;
  if (first < last) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first - base_),
              static_cast<off_t>(last - first));
  }
  used_ -= rounded(found->bytes, alignment);
  --count_;
  memmove(all_ + index, all_ + index + 1, (count_ - index) * sizeof *all_);
  return true;
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

void Memory::open(const Settings& settings) {
  constexpr std::uint64_t whole = std::uint64_t{1} << range_bits;
  for (std::uint64_t i = 0; i < ranges; ++i) {
    const bool of_device = i < devices_max;
    const std::uint64_t bytes = of_device && settings.memory_bytes < whole ? settings.memory_bytes : whole;
    ranges_[i].open(first_base + (i << range_bits), bytes / page_bytes * page_bytes);
  }
}

Range* Memory::range_of(const void* pointer) {
  const std::uint64_t index = (address_of(pointer) - first_base) >> range_bits;
  return address_of(pointer) >= first_base && index < ranges ? &ranges_[index] : nullptr;
}

bool Memory::is_unknown(const void* pointer) const {
  const bool in_a_range =
      address_of(pointer) >= first_base && (address_of(pointer) - first_base) >> range_bits < ranges;
  return !in_a_range && host_count_.load(std::memory_order_relaxed) == 0;
}

Place Memory::place_of(const void* pointer) const {
  const std::uint64_t address = address_of(pointer);
  const std::uint64_t index = (address - first_base) >> range_bits;
  if (address >= first_base && index < ranges) {
    const Allocation* found = ranges_[index].at(address);
    if (found != nullptr) {
      if (index < devices_max) return {Kind::device, static_cast<int>(index), *found};
      return {index == devices_max ? Kind::pinned : Kind::managed, 0, *found};
    }
  }
  for (int i = 0; i < host_count_; ++i) {
    const Host& each = hosts_[i];
    if (address >= each.allocation.start && address - each.allocation.start < each.allocation.bytes) {
      return {Kind::registered, each.device, each.allocation};
    }
  }
  return host_memory;
}

Memory::Registering Memory::add_host(void* start, std::uint64_t bytes, int device) {
  const std::uint64_t first = address_of(start);
  for (int i = 0; i < host_count_; ++i) {
    const Allocation& other = hosts_[i].allocation;
    if (first < other.start + other.bytes && other.start < first + bytes) return Registering::overlaps;
  }
  if (host_count_ == hosts_max) return Registering::no_room;
  hosts_[host_count_] = {{first, bytes}, device};
  ++host_count_;
  return Registering::done;
}

bool Memory::remove_host(void* start) {
  for (int i = 0; i < host_count_; ++i) {
    if (hosts_[i].allocation.start != address_of(start)) continue;
    hosts_[i] = hosts_[--host_count_];
    return true;
  }
  return false;
}

}  // namespace dryfly::gpu
