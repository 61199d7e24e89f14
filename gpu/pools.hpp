// Pools of a device's memory, from which streams take and to which they give back (cudaMallocAsync and its kin). What
// is given back is the program's no more at once; it goes to another stream when the work before it is over.
//
// Models docs/model/gpu.md#taking-memory. Left out: pools that other processes open, and where a pool's memory lies: it
// is among the rest of its device's. Not safe to call by several threads; the runtime has one lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/held.hpp"
#include "gpu/memory.hpp"
#include "gpu/timeline.hpp"

namespace dryfly::gpu {

struct MemoryPool {
  bool taken;
  int device;
  int reuse[3];  // what the program has said of it, without effect
  std::uint64_t threshold;
  std::uint64_t reserved;  // of the device, in pieces
  std::uint64_t most_reserved;
  std::uint64_t used;
  std::uint64_t most_used;
};

// As CUDA and HIP number them.
enum class PoolAttribute : int {
  reuse_first = 1,
  reuse_last = 3,
  threshold = 4,
  reserved = 5,
  most_reserved = 6,
  used = 7,
  most_used = 8,
};

class Pools {
 public:
  void open(int devices, Memory& memory, Timeline& timeline, Waits& waits);

  MemoryPool& standard(int device) { return pools_[device]; }
  MemoryPool*& current(int device) { return current_[device]; }
  // Null: it is none.
  MemoryPool* known(MemoryPool* pool) const;
  MemoryPool* create(int device);
  // False: it is a device's own one.
  bool destroy(MemoryPool& pool);

  // `reserves`: whether the pool has to ask the device for more.
  bool take(MemoryPool& pool, std::uint64_t bytes, const Stream& stream, std::uint64_t now_ps, std::uint64_t& start,
            bool& reserves);
  // Of a pool or not. `stream` null: nobody uses it any more.
  bool give_back(Allocation& allocation, int device, const Stream* stream, std::uint64_t now_ps);
  // The program has waited for something: pools give back what they hold beyond their thresholds.
  void synchronised(std::uint64_t now_ps);
  void trim(MemoryPool& pool, std::uint64_t keep, std::uint64_t now_ps);

  // A value is an int up to reuse_last. False: there is no such attribute, or it is not to be set so.
  bool read(const MemoryPool& pool, PoolAttribute attribute, void* value) const;
  bool write(MemoryPool& pool, PoolAttribute attribute, const void* value);

 private:
  struct Leaving {
    std::uint64_t start;
    int device;
    const Stream* stream;
    bool is_held;         // behind a wait for memory: when it is over is known when the stream waits no more
    std::uint64_t at_ps;  // when it is over
  };
  static constexpr int most = 254;
  static constexpr std::uint64_t piece_bytes = 32 << 20;

  void settle(std::uint64_t now_ps);
  void release(MemoryPool& pool, std::uint64_t keep);
  Allocation* find(const Leaving& leaving) const;
  void drop(std::size_t index);

  Memory* memory_;
  Timeline* timeline_;
  Waits* waits_;
  int devices_;
  MemoryPool pools_[most];
  MemoryPool* current_[devices_max];
  Leaving* leaving_;
  std::size_t leaving_count_;
  std::size_t leaving_room_;
};

}  // namespace dryfly::gpu
