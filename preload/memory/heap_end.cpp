#include "preload/memory/heap_end.hpp"

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>

namespace dryfly::preload {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t word = sizeof(std::size_t);  // in front of what malloc returns stands its chunk's size
constexpr std::uint64_t longest = 64 * 1024;         // shorter than what malloc maps apart
constexpr std::uint64_t kept_by_thread = 1040;       // chunks up to here malloc keeps by their exact size
constexpr std::uint64_t shortest = 32;
constexpr std::uint64_t step = 16;
// Of memory that is used up in vain. Where a program moves the end of the heap itself it is not found.
constexpr std::uint64_t most = std::uint64_t{8} << 20;

void* volatile kept = nullptr;  // the last one; what nobody keeps the compiler does not allocate

// Where the chunk begins that new ones are cut from when nothing that is free fits.
std::uint64_t heap_end() {
  return reinterpret_cast<std::uint64_t>(sbrk(0)) - static_cast<std::uint64_t>(mallinfo2().keepcost);
}

// Whether malloc gives this thread memory of the process's own heap: not a thread's, and not another allocator's.
bool allocates_on_heap() {
  kept = malloc(longest);
  const auto place = reinterpret_cast<std::uint64_t>(kept);
  const auto end = reinterpret_cast<std::uint64_t>(sbrk(0));
  const bool is_there = place < end && place >= end - static_cast<std::uint64_t>(mallinfo2().arena);
  free(kept);
  return is_there;
}

// True: it was cut from the end of the heap, which is now behind it.
bool take(std::uint64_t chunk, std::uint64_t& end) {
  kept = malloc(chunk - word);
  if (reinterpret_cast<std::uint64_t>(kept) != end + 2 * word) return false;
  end += malloc_usable_size(kept) + word;
  return true;
}

// Until nothing is free but the end of the heap. What was cut from it to find that out goes back where it can.
// False: the end of the heap is not where it seemed.
bool use_up(std::uint64_t chunk, std::uint64_t& end, std::uint64_t& used) {
  const std::uint64_t before = end;
  while (!take(chunk, end)) {
    used += chunk;
    if (kept == nullptr || used > most) return false;
  }
  if (chunk <= kept_by_thread) return true;
  free(kept);
  end = before;
  return true;
}

}  // namespace

void align_heap_end() {
  if (!allocates_on_heap()) return;
  std::uint64_t end = heap_end();
  std::uint64_t used = 0;
  for (std::uint64_t chunk = longest; chunk > kept_by_thread; chunk /= 2) {
    if (!use_up(chunk, end, used)) return;
  }
  for (std::uint64_t chunk = kept_by_thread; chunk >= shortest; chunk -= step) {
    if (!use_up(chunk, end, used)) return;
  }
  if (end % page != 0) take(shortest + (page - (end + shortest) % page) % page, end);
}

}  // namespace dryfly::preload
