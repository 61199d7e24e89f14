// Memory of devices that processes of a node show each other by handles: what an owner has shown, in a table behind its
// range, and what this process has opened of others. A handle names the owner's process and file, so it leads nowhere
// once the owner is gone, and a number that the owner's table has while the memory is not freed.
//
// Models docs/model/gpu.md. Left out: events between processes, and that memory outlives its owner where another still
// has it open.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/range.hpp"

namespace dryfly::gpu {

// Of the size that CUDA and HIP give their handles.
struct Handle {
  std::uint64_t magic;
  std::uint64_t node;   // of the owner: its name, as a number
  std::uint64_t range;  // drawn for each
  std::uint64_t serial;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::int32_t process;
  std::int32_t file;
  std::int32_t unit;  // the node's number of the device
  std::uint32_t entry;
};
static_assert(sizeof(Handle) == 64);

enum class Opening { done, own, bad_handle, no_room };

class Opened {
 public:
  static constexpr std::uint64_t most = 64;  // ranges of other processes

  void open(std::uint64_t base, std::uint64_t bytes_each);
  Opening add(const Handle& handle, int device, std::uint64_t& start);
  // False where nothing that is open begins there.
  bool remove(std::uint64_t start);

  struct Found {
    Allocation allocation;
    int device;  // that was current when it was opened
    int unit;
  };
  std::uint64_t end() const { return base_ + most * bytes_each_; }
  // Its unit is -1 where there is nothing.
  Found at(std::uint64_t address) const;

 private:
  struct Each {
    Range range;
    std::uint64_t name;
    int device;
    int unit;
  };
  Each* holding(std::uint64_t address);

  std::uint64_t base_;
  std::uint64_t bytes_each_;
  Each all_[most];
};

// A handle for the allocation, which is the range's. False where the owner's table is full.
bool show(Range& range, Allocation& allocation, int unit, Handle& handle);

}  // namespace dryfly::gpu
