// Memory of devices, pinned and managed memory: each in an address range of its own, so that a look at a pointer is
// arithmetic. A range is a memfd that is mapped as a whole when it is first used; pages that nobody has written take no
// memory of this computer, and those of freed allocations are given back.
//
// Models docs/model/gpu.md. Left out: that the processes of a node share a device's memory; each has it for itself.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/settings.hpp"

namespace dryfly::gpu {

enum class Kind : std::uint8_t { host, registered, pinned, managed, device };

struct Allocation {
  std::uint64_t start;
  std::uint64_t bytes;
};

// What a pointer points to.
struct Place {
  Kind kind;
  int device;  // that this process sees; -1: host memory that no device knows of
  Allocation allocation;
};

inline constexpr Place host_memory = {Kind::host, -1, {}};

class Range {
 public:
  // False where this computer lacks the memory or the address space, or the range is full.
  bool allocate(std::uint64_t bytes, std::uint64_t& start);
  bool free(std::uint64_t start);
  const Allocation* at(std::uint64_t address) const;
  void open(std::uint64_t base, std::uint64_t capacity) {
    base_ = base;
    capacity_ = capacity;
  }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_; }

 private:
  bool map();
  bool grow();

  std::uint64_t base_;
  std::uint64_t capacity_;
  std::uint64_t used_;
  int file_;
  bool mapped_;
  Allocation* all_;  // in the order of their addresses
  std::size_t count_;
  std::size_t room_;
};

// Not safe to call by several threads but for is_unknown(); the runtime has one lock.
class Memory {
 public:
  void open(const Settings& settings);
  Place place_of(const void* pointer) const;
  // Certain that no allocation holds it and that it is not registered.
  bool is_unknown(const void* pointer) const;
  Range& device(int number) { return ranges_[number]; }
  Range& pinned() { return ranges_[devices_max]; }
  Range& managed() { return ranges_[devices_max + 1]; }
  // The range that holds the pointer, or null.
  Range* range_of(const void* pointer);

  enum class Registering { done, overlaps, no_room };
  Registering add_host(void* start, std::uint64_t bytes, int device);
  bool remove_host(void* start);

 private:
  struct Host {
    Allocation allocation;
    int device;
  };
  static constexpr int ranges = devices_max + 2;
  static constexpr int hosts_max = 4096;

  Range ranges_[ranges];
  Host hosts_[hosts_max];
  std::atomic<int> host_count_;
};

}  // namespace dryfly::gpu
