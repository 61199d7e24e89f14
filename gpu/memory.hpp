// Memory of devices, pinned and managed memory, and what others have shown of theirs: each in an address range of its
// own, so that a look at a pointer is arithmetic. A range is mapped as a whole when it is first used.
//
// Models docs/model/gpu.md. Left out: that the processes of a node share a device's memory; each has it for itself.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/range.hpp"
#include "gpu/settings.hpp"
#include "gpu/shared.hpp"

namespace dryfly::gpu {

enum class Kind : std::uint8_t { host, registered, pinned, managed, device };

// What a pointer points to.
struct Place {
  Kind kind;
  int device;  // that this process sees; -1: host memory that no device knows of
  int unit;    // the node's number of the device whose memory it is; -1: the host's
  Allocation allocation;
};

inline constexpr Place host_memory = {Kind::host, -1, -1, {}};

// Not safe to call by several threads but for is_unknown(); the runtime has one lock.
class Memory {
 public:
  // Ends the process where this computer has not as many addresses left.
  void open(const Settings& settings);
  ~Memory();
  Place place_of(const void* pointer) const;
  // Certain that no allocation holds it and that it is not registered.
  bool is_unknown(const void* pointer) const;
  Range& device(int number) { return ranges_[number]; }
  Range& pinned() { return ranges_[devices_max]; }
  Range& managed() { return ranges_[devices_max + 1]; }
  // The range of this process' own that holds the pointer, or null.
  Range* range_of(const void* pointer);
  // Of all devices, pinned and managed.
  std::uint64_t used() const {
    std::uint64_t bytes = 0;
    for (const Range& range : ranges_) bytes += range.used();
    return bytes;
  }
  // Within the ranges, of this process or of others.
  bool is_inside(const void* pointer) const;

  enum class Registering { done, overlaps, no_room };
  Registering add_host(void* start, std::uint64_t bytes, int device);
  bool remove_host(void* start);
  // A handle of a device's memory for other processes of the node. False where the pointer is none of a device here.
  bool show(const void* pointer, Handle& handle);
  Opened& opened() { return opened_; }
  // Of a device here; else null.
  Allocation* allocation_of(const void* pointer);

 private:
  struct Host {
    Allocation allocation;
    int device;
  };
  static constexpr std::uint64_t ranges = devices_max + 2;
  static constexpr int hosts_max = 4096;

  // How many of them begin at that address or before it.
  int hosts_up_to(std::uint64_t address) const;

  std::uint64_t base_;  // 0: there are no devices
  int units_[devices_max];
  int device_count_;
  Range ranges_[ranges];
  Opened opened_;
  Host hosts_[hosts_max];  // by their addresses
  std::atomic<int> host_count_;
};

}  // namespace dryfly::gpu
