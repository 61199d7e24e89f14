// The other threads of this process, as the kernel has them.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace dryfly::preload {

// The kernel's number of the first other thread that is running, waiting for a processor, or for a disk, and is not to
// be left out; 0 if there is none. The main thread comes first, then the others in the order in which they were made.
pid_t running_thread();
pid_t running_thread(bool (*left_out)(pid_t id, std::uint64_t argument), std::uint64_t argument);
// A thread has been made.
void note_new_thread();
// The processor time that a thread of this process has used, in ns; 0 if it is gone. Touches no errno.
std::uint64_t thread_cpu_ns(pid_t id);

}  // namespace dryfly::preload
