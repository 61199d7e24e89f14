// The threads of a kernel's blocks, on this thread of the program's.
//
// Loaded into user programs: libc only.
#pragma once

#include <cstddef>

#include "gpu/kernels.hpp"

namespace dryfly::gpu {

inline constexpr unsigned threads_max = 1024;          // of a block
inline constexpr std::size_t shared_most = 64 * 1024;  // that a launch asks for, bytes

using Invoke = void(const void* function, void** arguments);

struct Body {
  Invoke* invoke;
  const void* function;
  void** arguments;
};

void run_blocks(Shape grid, Shape block, const Body& body);

}  // namespace dryfly::gpu
