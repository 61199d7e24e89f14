// Where the ranks run: the cores, NUMA nodes and memory that the system allows each, printed as a map before a native
// run. What cannot be meant is refused: ranks that were bound to cores they have to share, and more BLAS threads than
// a rank has cores. The file system of Linux says all of it; NICs are those that it has under /sys/class/cxi.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace dryfly::hpl {

struct Place {
  std::string host;
  std::vector<int> cores;         // allowed by the system's scheduler
  std::vector<int> online;        // of the host
  std::vector<int> numa_nodes;    // of those cores
  std::vector<int> memory_nodes;  // from which memory may come
  std::vector<int> nics;          // of those NUMA nodes
};

Place place_of_this_process();

// "0-3,8"; the form of the system's own lists.
std::string list_text(const std::vector<int>& numbers);
std::vector<int> parse_list(const std::string& text);

// The places of all ranks, on the first of `where` only.
std::vector<Place> gather_places(const Place& mine, MPI_Comm where);

// One sentence about what cannot be meant, or nothing.
std::string nonsense(const std::vector<Place>& places, int threads);

// A line for each group of ranks with the same place.
std::string map_text(const std::vector<Place>& places);

// Collective over all ranks: the map, on the first rank; BadInput if it is nonsense and `refuse` is set. Nothing under
// dryfly, where ranks run wherever there is room and their nodes are simulated.
std::string checked_map(bool refuse, int threads);

}  // namespace dryfly::hpl
