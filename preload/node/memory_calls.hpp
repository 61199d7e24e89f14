// The calls by which memory is bound to NUMA domains of the simulated node: mbind, set_mempolicy and their like, as
// system calls and under the names that libnuma gives them. Left out: that pages lie where they were touched first, how
// much a domain holds, migration.
#pragma once

#include <cstdint>

#include "preload/node/binding.hpp"

namespace dryfly::preload {

// As the system calls: -1 and errno. Of a mask of domains the kernel reads one bit less than `bits`.
long place_memory(long address, std::uint64_t bytes, int mode, const std::uint64_t* domains, std::uint64_t bits);
long set_memory_policy(int mode, const std::uint64_t* domains, std::uint64_t bits);
long get_memory_policy(int* mode, std::uint64_t* domains, std::uint64_t bits, long address, std::uint64_t flags);
// Without `to`: where they are.
long move_pages_virtually(std::uint64_t count, const long* pages, const int* to, int* status);

}  // namespace dryfly::preload
