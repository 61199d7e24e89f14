// Memory into the cache before it is needed. Changes nothing but time.
#pragma once

#include <cstddef>

namespace dryfly {

// The line that it lies in. GCC takes a function that prefetches and does nothing else for one without effect, and
// leaves the calls of it out: the empty statement is an effect.
inline void fetch_line(const void* from) {
  __asm__ volatile("");
  __builtin_prefetch(from);
}

// All lines of so many bytes.
inline void fetch_lines(const void* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) fetch_line(static_cast<const char*>(from) + at);
}

}  // namespace dryfly
