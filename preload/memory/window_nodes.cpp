// Windows whose ranks are all on one node, in Open MPI 5 (preload/memory/windows.hpp).
//
// There osc/rdma changes locks, counters and data by the CPU's atomics in memory that the ranks share: without virtual
// time, in whatever order the host runs the ranks. Where some rank is on another node it goes through the NIC for all
// of them. So while a window is made, osc/rdma is told that each rank is alone on its node, and on-node one-sided
// communication goes over the on-node link as messages do. With `--on-node shared`, where the ranks of a node are in
// MPI one after the other, its own way stands.
//
// osc/rdma asks through a function inside the library. HAN asks the same with information of its own.
#include <dlfcn.h>

#include "preload/export.hpp"
#include "preload/memory/windows.hpp"
#include "preload/mpi/mpi_library.hpp"

namespace dryfly::preload {

namespace {

using Split = int(void* communicator, int type, int key, void* info, void** result);

int number_of(const char* question, void* communicator) {
  int answer = 0;
  reinterpret_cast<int (*)(void*, int*)>(find_pmpi(question))(communicator, &answer);
  return answer;
}

// Of `parts`, the communicator of the ranks on this one's node, if that has all ranks: instead, one of each rank's own.
int set_apart(void* communicator, void** part) {
  const int count = number_of("Comm_size", communicator);
  if (count == 1 || number_of("Comm_size", *part) != count) return 0;
  if (const int error = reinterpret_cast<int (*)(void**)>(find_pmpi("Comm_free"))(part); error != 0) return error;
  const int rank = number_of("Comm_rank", communicator);
  return reinterpret_cast<int (*)(void*, int, int, void**)>(find_pmpi("Comm_split"))(communicator, rank, 0, part);
}

}  // namespace

}  // namespace dryfly::preload

DRYFLY_EXPORT int ompi_comm_split_type(void* communicator, int type, int key, void* info, void** result) {
  using namespace dryfly::preload;
  auto* split = reinterpret_cast<Split*>(find_in_library("ompi_comm_split_type"));
  const int error = split(communicator, type, key, info, result);
  if (error != 0 || info != nullptr || !makes_watched_window()) return error;
  return set_apart(communicator, result);
}
