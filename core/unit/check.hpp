// DRYFLY_CHECK states what must hold. It is always on: a simulator that goes on after its own bug prints wrong
// numbers with confidence. A failed check names the condition and ends the process.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace dryfly {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "dryfly: internal error: check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

[[noreturn]] inline void reached(const char* what, const char* file, int line) {
  std::fprintf(stderr, "dryfly: internal error: not meant to be reached: %s (%s:%d)\n", what, file, line);
  std::abort();
}

}  // namespace dryfly

#define DRYFLY_CHECK(condition)                                             \
  (__builtin_expect(static_cast<bool>(condition), 1) ? static_cast<void>(0) \
                                                     : ::dryfly::check_failed(#condition, __FILE__, __LINE__))

// For a place that no run comes to; `what` says what would have had to come.
#define DRYFLY_UNREACHABLE(what) ::dryfly::reached(what, __FILE__, __LINE__)
