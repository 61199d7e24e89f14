#include "host_memory.hpp"

#include <mpi.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace dryfly::hpl {
namespace {

double available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("MemAvailable:", 0) == 0) return std::stod(line.substr(13)) * 1024;
  return std::numeric_limits<double>::infinity();
}

}  // namespace

double usable_bytes(int ranks) {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  boot >> id;
  const auto mine = static_cast<unsigned long long>(std::hash<std::string>{}(id));
  std::vector<unsigned long long> all(static_cast<std::size_t>(ranks));
  MPI_Allgather(&mine, 1, MPI_UNSIGNED_LONG_LONG, all.data(), 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
  double each = available_bytes() / static_cast<double>(std::count(all.begin(), all.end(), mine));
  MPI_Allreduce(MPI_IN_PLACE, &each, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  return each * ranks;
}

}  // namespace dryfly::hpl
