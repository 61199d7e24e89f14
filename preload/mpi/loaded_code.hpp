// Where the code of a part of the MPI library lies in this process.
#pragma once

#include <atomic>
#include <cstdint>

namespace dryfly::preload {

class LoadedCode {
 public:
  constexpr LoadedCode() = default;
  // Is that address in the part that has this function? The first question looks it up, for good: no part is unmapped
  // before the process ends. A library without such a function has no such part.
  bool has(const void* address, const char* function);

 private:
  void look_up(const char* function);

  std::atomic<std::uintptr_t> begin_{0};
  std::atomic<std::uintptr_t> end_{0};
};

}  // namespace dryfly::preload
