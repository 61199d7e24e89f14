#include "gpu/memory.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace dryfly::gpu {

namespace {

// Below what Linux gives to libraries and stacks, above what it gives to heaps of programs at a fixed address; the
// first of these that nobody has, such as PMIx with memory of its own.
constexpr std::uint64_t bases[] = {0x1000'0000'0000, 0x0400'0000'0000, 0x2800'0000'0000, 0x3800'0000'0000};
constexpr unsigned range_bits = 39;  // 512 GiB for each
// For each of what others have shown: more than a device has, and all of them end below where Linux puts programs.
constexpr std::uint64_t opened_bytes = std::uint64_t{1} << 38;
constexpr std::uint64_t page_bytes = 4096;

// Holds the addresses for the ranges, which are mapped in them one by one. 0: nowhere are as many.
std::uint64_t reserved(std::uint64_t bytes) {
  for (const std::uint64_t base : bases) {
    void* const wanted = reinterpret_cast<void*>(base);
    if (mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) ==
        wanted) {
      return base;
    }
  }
  return 0;
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

void Memory::open(const Settings& settings) {
  constexpr std::uint64_t whole = std::uint64_t{1} << range_bits;
  if (settings.devices == 0) return;
  base_ = reserved(ranges * whole + Opened::most * opened_bytes);
  if (base_ == 0) abort();
  for (std::uint64_t i = 0; i < ranges; ++i) {
    const bool of_device = i < devices_max;
    const std::uint64_t bytes = of_device && settings.memory_bytes < whole ? settings.memory_bytes : whole;
    ranges_[i].open(base_ + (i << range_bits), bytes / page_bytes * page_bytes);
  }
  opened_.open(base_ + ranges * whole, opened_bytes);
  device_count_ = settings.devices;
  for (int i = 0; i < device_count_; ++i) units_[i] = settings.physical[i];
}

Memory::~Memory() {
  if (base_ != 0) munmap(reinterpret_cast<void*>(base_), opened_.end() - base_);
}

Range* Memory::range_of(const void* pointer) {
  const std::uint64_t index = (address_of(pointer) - base_) >> range_bits;
  return address_of(pointer) >= base_ && index < ranges ? &ranges_[index] : nullptr;
}

bool Memory::is_inside(const void* pointer) const {
  return base_ != 0 && address_of(pointer) >= base_ && address_of(pointer) < opened_.end();
}

bool Memory::is_unknown(const void* pointer) const {
  return !is_inside(pointer) && host_count_.load(std::memory_order_relaxed) == 0;
}

Place Memory::place_of(const void* pointer) const {
  const std::uint64_t address = address_of(pointer);
  const std::uint64_t index = (address - base_) >> range_bits;
  if (address >= base_ && index < ranges) {
    const Allocation* found = ranges_[index].at(address);
    if (found != nullptr && !found->leaving) {
      if (index < devices_max) return {Kind::device, static_cast<int>(index), units_[index], *found};
      return {index == devices_max ? Kind::pinned : Kind::managed, 0, -1, *found};
    }
  } else if (address >= base_) {
    const Opened::Found found = opened_.at(address);
    if (found.unit >= 0) {
      // Its device by this process' number, where it sees that device.
      int device = found.device;
      for (int i = 0; i < device_count_; ++i) device = units_[i] == found.unit ? i : device;
      return {Kind::device, device, found.unit, found.allocation};
    }
  }
  const int up_to = hosts_up_to(address);
  if (up_to == 0) return host_memory;
  const Host& last = hosts_[up_to - 1];
  if (address - last.allocation.start >= last.allocation.bytes) return host_memory;
  return {Kind::registered, last.device, -1, last.allocation};
}

Allocation* Memory::allocation_of(const void* pointer) {
  const std::uint64_t index = (address_of(pointer) - base_) >> range_bits;
  if (address_of(pointer) < base_ || index >= devices_max) return nullptr;
  Allocation* const found = ranges_[index].at(address_of(pointer));
  return found != nullptr && !found->leaving ? found : nullptr;
}

bool Memory::show(const void* pointer, Handle& handle) {
  Allocation* const found = allocation_of(pointer);
  if (found == nullptr || found->pool != 0) return false;
  const std::uint64_t index = (address_of(pointer) - base_) >> range_bits;
  return gpu::show(ranges_[index], *found, units_[index], handle);
}

int Memory::hosts_up_to(std::uint64_t address) const {
  int low = 0;
  int high = host_count_;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (hosts_[middle].allocation.start <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Memory::Registering Memory::add_host(void* start, std::uint64_t bytes, int device) {
  const std::uint64_t first = address_of(start);
  const int index = hosts_up_to(first + bytes - 1);
  if (index != 0 && hosts_[index - 1].allocation.start + hosts_[index - 1].allocation.bytes > first) {
    return Registering::overlaps;
  }
  if (host_count_ == hosts_max) return Registering::no_room;
  memmove(hosts_ + index + 1, hosts_ + index, static_cast<std::size_t>(host_count_ - index) * sizeof *hosts_);
  hosts_[index] = {};
  hosts_[index].allocation.start = first;
  hosts_[index].allocation.bytes = bytes;
  hosts_[index].device = device;
  ++host_count_;
  return Registering::done;
}

bool Memory::remove_host(void* start) {
  const int up_to = hosts_up_to(address_of(start));
  if (up_to == 0 || hosts_[up_to - 1].allocation.start != address_of(start)) return false;
  memmove(hosts_ + up_to - 1, hosts_ + up_to, static_cast<std::size_t>(host_count_ - up_to) * sizeof *hosts_);
  --host_count_;
  return true;
}

}  // namespace dryfly::gpu
