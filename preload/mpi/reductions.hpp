// What the MPI call that is about to begin does with its data, as far as that decides what it costs: how its buffer
// lies in memory, and which operation it reduces by (docs/model/software.md#reductions).
#pragma once

#include "preload/mpi/bytes.hpp"
#include "preload/mpi/mpi_calls.hpp"

namespace dryfly::preload {

// The place of the operation among a call's arguments, behind that of its datatype; -1: it does not reduce.
constexpr int operation_of(Call call) {
  switch (call) {
    case Call::Reduce_local:
    case Call::Reduce_local_c:
    case Call::Reduce:
    case Call::Reduce_c:
    case Call::Ireduce:
    case Call::Ireduce_c:
    case Call::Allreduce:
    case Call::Allreduce_c:
    case Call::Iallreduce:
    case Call::Iallreduce_c:
    case Call::Reduce_scatter:
    case Call::Reduce_scatter_c:
    case Call::Ireduce_scatter:
    case Call::Ireduce_scatter_c:
    case Call::Reduce_scatter_block:
    case Call::Reduce_scatter_block_c:
    case Call::Ireduce_scatter_block:
    case Call::Ireduce_scatter_block_c:
    case Call::Scan:
    case Call::Scan_c:
    case Call::Iscan:
    case Call::Iscan_c:
    case Call::Exscan:
    case Call::Exscan_c:
    case Call::Iexscan:
    case Call::Iexscan_c:
    case Call::Reduce_init:
    case Call::Reduce_init_c:
    case Call::Allreduce_init:
    case Call::Allreduce_init_c:
    case Call::Reduce_scatter_init:
    case Call::Reduce_scatter_init_c:
    case Call::Reduce_scatter_block_init:
    case Call::Reduce_scatter_block_init_c:
    case Call::Scan_init:
    case Call::Scan_init_c:
    case Call::Exscan_init:
    case Call::Exscan_init_c:
      return 4;
    default:
      return -1;
  }
}

constexpr bool reduces_locally(Call call) { return call == Call::Reduce_local || call == Call::Reduce_local_c; }

// In front of a call whose software is charged.
void describe_data(const Shape& shape, int operation, const long* words);

}  // namespace dryfly::preload
