// The calls by which a process is bound to hardware threads, on its simulated node. Results are those of Linux: what
// lies outside the job's set is left out, and a mask of nothing else is EINVAL. Left out: other processes (EPERM).
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/node/binding.hpp"

namespace dryfly::preload {

// As the system calls: -1 and errno, or the bytes written. `caller`: the code that binds, for MPI's own takes no time.
long set_affinity(std::int32_t thread, std::size_t bytes, const unsigned char* mask, const void* caller);
long get_affinity(std::int32_t thread, std::size_t bytes, unsigned char* mask);
// As getcpu, on a node.
long get_processor(std::uint32_t* processor, std::uint32_t* domain);

}  // namespace dryfly::preload
