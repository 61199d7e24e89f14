// Where this process is bound within its simulated node. Its launcher says so in DRYFLY_BINDING, and what the process
// does itself counts: affinity_calls.cpp and memory_calls.cpp answer the calls by which Linux programs bind themselves,
// and the host's own processors are never touched. Children have their parent's binding, as on Linux: by fork in
// memory, and across exec in the variable (exec_calls.cpp), so that taskset, numactl and hwloc-bind work in wrapper
// scripts.
//
// A binding is the main thread's: other threads may have sets of their own, which are told back and cost nothing. The
// rank tells the conductor of each change (dryfly_self.moved). Models docs/model/nodes.md#what-a-place-costs. Left out:
// cpusets and cgroups, binding another process, and that an unbound rank moves.
#pragma once

#include <cstdint>

#include "preload/node/shape.hpp"

namespace dryfly::preload {

// Linux's numbers for policies of memory.
enum class MemoryPolicy : std::uint32_t { usual = 0, preferred, bind, interleave, local, preferred_many, weighted };

struct Binding {
  Processors processors;  // none: not bound
  MemoryPolicy policy = MemoryPolicy::usual;
  std::uint64_t memories = 0;         // of the policy
  std::uint64_t placed_memories = 0;  // of the largest range of memory that was placed by itself (mbind)
  std::uint64_t placed_bytes = 0;
};

// Null where this process has no simulated node.
const Binding* binding();

// What a thread of this process may run on. `thread`: 0, this one.
Processors processors_of(std::int32_t thread);
bool is_bound();
// On which one this thread is: the first of those that it is bound to; usual_processor, where nobody has bound it.
std::uint32_t current_processor();
// False: none of the set may be used.
bool bind_to(std::int32_t thread, const Processors& wanted);
void set_policy(MemoryPolicy policy, std::uint64_t memories);
void place_range(std::uint64_t bytes, std::uint64_t memories);

// Is it a thread of this process?
bool is_own_thread(std::int32_t thread);

inline constexpr std::uint32_t binding_text_max = 8192;
// "DRYFLY_BINDING=..." for a program that this process turns into; empty: it has never been bound.
const char* changed_binding(char (&room)[binding_text_max]);

}  // namespace dryfly::preload
