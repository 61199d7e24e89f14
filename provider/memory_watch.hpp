// Which memory of the process has gone: unmapped, moved, given back to the kernel. It stands for each of libfabric's
// monitors of memory, and does what its memhooks does: the C library's functions through which memory goes are made to
// come here first, so that what malloc gives back is seen too. What goes by a system call of the program's own is not.
//
// Nothing is allocated and nobody waited for in such a call: what has gone is kept until a buffer is registered.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dryfly::provider {

class Registrations;

struct MemoryRange {
  std::uint64_t begin;
  std::uint64_t end;

  bool holds(const MemoryRange& other) const { return begin <= other.begin && other.end <= end; }
};

// Ranges that have gone and that nobody has been told of.
extern std::atomic<std::uint32_t> gone_count;
inline bool memory_has_gone() { return gone_count.load(std::memory_order_relaxed) != 0; }

// From the first call on the process is watched.
void watch_memory_for(Registrations& registrations);
void stop_watching_for(const Registrations& registrations);
// In a child, in which the thread that was in one of the calls is not.
void watch_in_child();
// Tells all of them what has gone since.
void tell_what_has_gone();

}  // namespace dryfly::provider
