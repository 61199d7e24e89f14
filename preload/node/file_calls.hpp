// Files in which Linux tells programs of a node: /sys/devices/system/node and cpu, /proc/cpuinfo, and what a process is
// bound to in /proc/self/status, for libnuma (numactl), lscpu and many others. They are told of the simulated node: of
// the first from a folder of the run (DRYFLY_NODE_FILES, python/dryfly/case/node_files.py), in the last with its lines
// of processors and memories changed. Who asks whether they are there (stat_calls.cpp) is told of the same. Left out:
// who opens them by a system call of its own or relative to /sys; hwloc has a file of its own (HWLOC_XMLFILE).
#pragma once

#include <cstddef>

namespace dryfly::preload {

inline constexpr std::size_t path_max = 4096;
// The file of the run in its place; the path itself where there is none.
const char* on_node(const char* path, char (&room)[path_max]);

bool is_own_status(const char* path);
// As open.
int open_own_status(int flags);

}  // namespace dryfly::preload
