// System calls that programs make themselves, by syscall(): taskset, libnuma and hwloc do, for where they are bound.
#pragma once

namespace dryfly::preload {

// True: `result` is what syscall() gives, with errno. False: the call is the kernel's, as it is outside a run.
bool answers_for_node(long number, const long (&arguments)[6], const void* caller, long& result);

}  // namespace dryfly::preload
