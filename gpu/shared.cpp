#include "gpu/shared.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dryfly::gpu {

namespace {

constexpr std::uint64_t magic = 0x7064'6779'6c66'7264;

// The node as the rank knows it: several simulated nodes are on one computer, and a handle of another is none.
std::uint64_t this_node() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char* at = name; *at != '\0'; ++at) hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100'0000'01b3;
  return hash;
}

// The owner's table says whether the memory is still there.
bool is_shown(int file, std::uint64_t capacity, const Handle& handle) {
  Shown const* const table = static_cast<const Shown*>(
      mmap(nullptr, sizeof(Shown), PROT_READ, MAP_SHARED, file, static_cast<off_t>(capacity)));
  if (table == MAP_FAILED) return false;
  const bool yes = table->range == handle.range && handle.entry < Shown::most && handle.serial != 0 &&
                   table->serials[handle.entry] == handle.serial;
  munmap(const_cast<Shown*>(table), sizeof(Shown));
  return yes;
}

}  // namespace

bool show(Range& range, Allocation& allocation, int unit, Handle& handle) {
  static std::uint64_t serial = 0;
  Shown* const table = range.shown();
  if (table == nullptr) return false;
  std::uint32_t entry = allocation.shown != 0 ? allocation.shown - 1 : 0;
  if (allocation.shown == 0) {
    while (entry < Shown::most && table->serials[entry] != 0) ++entry;
    if (entry == Shown::most) return false;
    table->serials[entry] = ++serial;
    allocation.shown = entry + 1;
  }
  handle = {.magic = magic,
            .node = this_node(),
            .range = table->range,
            .serial = table->serials[entry],
            .offset = allocation.start - range.base(),
            .bytes = allocation.bytes,
            .process = getpid(),
            .file = range.file(),
            .unit = unit,
            .entry = entry};
  return true;
}

void Opened::open(std::uint64_t base, std::uint64_t bytes_each) {
  base_ = base;
  bytes_each_ = bytes_each;
  for (std::uint64_t i = 0; i < most; ++i) all_[i].range.open(base + i * bytes_each, bytes_each);
}

Opened::Each* Opened::holding(std::uint64_t address) {
  const std::uint64_t index = (address - base_) / bytes_each_;
  return address >= base_ && index < most && all_[index].range.is_mapped() ? &all_[index] : nullptr;
}

Opening Opened::add(const Handle& handle, int device, std::uint64_t& start) {
  if (handle.magic != magic || handle.node != this_node()) return Opening::bad_handle;
  if (handle.process == getpid()) return Opening::own;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.file);
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return Opening::bad_handle;
  struct stat facts;
  const std::uint64_t bytes = fstat(file, &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
  const std::uint64_t capacity = bytes > sizeof(Shown) ? bytes - sizeof(Shown) : 0;
  if (handle.offset > capacity || handle.bytes > capacity - handle.offset || capacity > bytes_each_ ||
      !is_shown(file, capacity, handle)) {
    close(file);
    return Opening::bad_handle;
  }
  Each* found = nullptr;
  for (Each& each : all_) {
    if (each.range.is_mapped() && each.name == handle.range) found = &each;
  }
  if (found != nullptr) {
    close(file);
  } else {
    for (Each& each : all_) {
      if (!each.range.is_mapped()) found = &each;
    }
    if (found == nullptr) {
      close(file);
      return Opening::no_room;
    }
    if (!found->range.adopt(file, capacity)) return Opening::no_room;
    found->name = handle.range;
    found->device = device;
    found->unit = handle.unit;
  }
  start = found->range.base() + handle.offset;
  Allocation* allocation = found->range.at(start);
  if (allocation == nullptr) allocation = found->range.add(start, handle.bytes);
  if (allocation == nullptr) return Opening::no_room;
  // Its owner has freed what is still open here, and has something else there now.
  if (allocation->start != start) return Opening::bad_handle;
  ++allocation->opened;
  return Opening::done;
}

bool Opened::remove(std::uint64_t start) {
  Each* const each = holding(start);
  if (each == nullptr) return false;
  Allocation* const found = each->range.at(start);
  if (found == nullptr || found->start != start) return false;
  if (--found->opened == 0) each->range.remove(found);
  return true;
}

Opened::Found Opened::at(std::uint64_t address) const {
  const Each* const each = const_cast<Opened*>(this)->holding(address);
  const Allocation* const found = each != nullptr ? each->range.at(address) : nullptr;
  return found != nullptr ? Found{*found, each->device, each->unit} : Found{{}, -1, -1};
}

}  // namespace dryfly::gpu
