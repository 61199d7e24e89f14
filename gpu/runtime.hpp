// A node's GPUs as one process has them: devices and memory, other processes' too. Work on them: gpu/streams.hpp.
//
// Loaded into user programs: libc only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/state.hpp"

namespace dryfly::gpu {

class Runtime {
 public:
  static Runtime& get();

  const Settings& settings() const { return state_.settings; }
  int device() const;  // of the calling thread
  Result set_device(int device);

  // `alignment`: a power of two; 0: as the runtime likes.
  Result allocate(Kind kind, std::uint64_t bytes, void*& pointer, std::uint64_t alignment = 0);
  void mark_whole(const void* pointer);
  Result release(void* pointer, bool of_host);
  Result register_host(void* start, std::uint64_t bytes);

  // Pools of memory; `device`: the number of one that there is. Memory that is given back in a stream may be of no
  // pool.
  MemoryPool* pool(int device, bool standard);
  Result set_pool(int device, MemoryPool* pool);
  Result create_pool(int device, MemoryPool*& pool);
  Result destroy(MemoryPool* pool);
  Result trim(MemoryPool* pool, std::uint64_t keep);
  Result read(MemoryPool* pool, int attribute, void* value);
  Result write(MemoryPool* pool, int attribute, const void* value);
  // `pool` null: the one of the stream's device.
  Result take_in_stream(MemoryPool* pool, std::uint64_t bytes, Stream* stream, void*& pointer);
  Result give_back_in_stream(void* pointer, Stream* stream);
  Result unregister_host(void* start);
  Place place_of(const void* pointer);
  // Whether bytes of a device's memory, or all of the host's, are of one allocation. False of what was given back, too.
  bool is_whole(const void* pointer, std::uint64_t bytes);
  // Bytes of the calling thread's device.
  void memory_info(std::size_t& unused, std::size_t& all);

  // Copies and fills of the device's memory that have no stream of their own are over when their calls come back from
  // now on, and what is under way comes to its end first. Result::bad_value: no device's memory.
  Result make_synchronous(const void* pointer, bool synchronous);
  // Of the driver of a NIC that is about to move bytes of it; `synchronous`: it asks for that, too.
  void reached_by_nic(const void* pointer, bool synchronous);
  // And of one that copies some to or from memory of its own, by a copy of the runtime in no stream of the program's,
  // or by the processor's loads and stores. Nothing where they are the host's.
  void copied_by_runtime(const void* pointer, std::uint64_t bytes, Way way, bool pageable);
  void copied_by_processor(const void* pointer, std::uint64_t bytes, Way way);

  // A device's memory for other processes of the node, and theirs here, as it comes from the faces' handles.
  Result show(const void* pointer, Handle& handle);
  Result open(const Handle& handle, void*& pointer);
  Result close(void* pointer);

 private:
  explicit Runtime(State& state) : state_(state) {}
  // -1: it is no device's memory.
  int device_of(const void* pointer);

  State& state_;
};

}  // namespace dryfly::gpu
