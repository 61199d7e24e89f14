#include "preload/memory/heap_end.hpp"

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>

namespace dryfly::preload {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t head = 2 * sizeof(std::size_t);  // of a chunk, in front of what malloc returns
constexpr std::uint64_t aside = 16 * page;               // longer than most that are free, and shorter than a mapping
constexpr int attempts = 16;

void* volatile kept = nullptr;  // the last one; what nobody keeps the compiler does not allocate

// Where the chunk begins that all new ones are cut from.
std::uint64_t heap_end() {
  return reinterpret_cast<std::uint64_t>(sbrk(0)) - static_cast<std::uint64_t>(mallinfo2().keepcost);
}

}  // namespace

void align_heap_end() {
  for (int attempt = 0; attempt < attempts && heap_end() % page != 0; ++attempt) {
    const std::uint64_t chunk = aside + page - heap_end() % page;
    // Kept for good, untouched but for its head. It may have been cut from something else that is free: then again.
    kept = malloc(chunk - head / 2);
  }
}

}  // namespace dryfly::preload
