// What Linux tells of the node's processors in /sys/devices/system/cpu: their numbers, and of each its core, its socket
// and what shares these. For lscpu and the like, and made when the first process of the job looks, for it is many
// files. Left out: caches, frequencies, and whatever is none of where a processor is.
#pragma once

namespace dryfly::preload {

// In `folder`/cpu, once for a job. False: they cannot be written.
bool make_processor_files(const char* folder);

}  // namespace dryfly::preload
