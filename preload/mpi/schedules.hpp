// Which requests are nonblocking or persistent collectives. A wait for one carries out a schedule of many messages, and
// the library executes other code in it than in a wait for a message: what it costs is told apart
// (docs/model/software.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/mpi/mpi_calls.hpp"
#include "wire/wire.hpp"

namespace dryfly::preload {

// What a call does with requests.
enum class Requests : std::uint8_t {
  none,
  starts,  // a nonblocking collective, or makes a persistent one; the request is its last argument
  one,     // waits for, tests, starts or frees the one at its first argument
  value,   // the same, given by value
  many,    // a count and an array
};

constexpr Requests requests_of(Call call) {
  switch (call) {
    case Call::Wait:
    case Call::Test:
    case Call::Start:
    case Call::Request_free:
      return Requests::one;
    case Call::Request_get_status:
      return Requests::value;
    case Call::Waitall:
    case Call::Waitany:
    case Call::Waitsome:
    case Call::Testall:
    case Call::Testany:
    case Call::Testsome:
    case Call::Startall:
      return Requests::many;
    case Call::Allgather_init:
    case Call::Allgather_init_c:
    case Call::Allgatherv_init:
    case Call::Allgatherv_init_c:
    case Call::Allreduce_init:
    case Call::Allreduce_init_c:
    case Call::Alltoall_init:
    case Call::Alltoall_init_c:
    case Call::Alltoallv_init:
    case Call::Alltoallv_init_c:
    case Call::Alltoallw_init:
    case Call::Alltoallw_init_c:
    case Call::Barrier_init:
    case Call::Bcast_init:
    case Call::Bcast_init_c:
    case Call::Exscan_init:
    case Call::Exscan_init_c:
    case Call::Gather_init:
    case Call::Gather_init_c:
    case Call::Gatherv_init:
    case Call::Gatherv_init_c:
    case Call::Neighbor_allgather_init:
    case Call::Neighbor_allgather_init_c:
    case Call::Neighbor_allgatherv_init:
    case Call::Neighbor_allgatherv_init_c:
    case Call::Neighbor_alltoall_init:
    case Call::Neighbor_alltoall_init_c:
    case Call::Neighbor_alltoallv_init:
    case Call::Neighbor_alltoallv_init_c:
    case Call::Neighbor_alltoallw_init:
    case Call::Neighbor_alltoallw_init_c:
    case Call::Reduce_init:
    case Call::Reduce_init_c:
    case Call::Reduce_scatter_block_init:
    case Call::Reduce_scatter_block_init_c:
    case Call::Reduce_scatter_init:
    case Call::Reduce_scatter_init_c:
    case Call::Scan_init:
    case Call::Scan_init_c:
    case Call::Scatter_init:
    case Call::Scatter_init_c:
    case Call::Scatterv_init:
    case Call::Scatterv_init_c:
    case Call::Comm_idup:
    case Call::Comm_idup_with_info:
    case Call::Iallgather:
    case Call::Iallgather_c:
    case Call::Iallgatherv:
    case Call::Iallgatherv_c:
    case Call::Iallreduce:
    case Call::Iallreduce_c:
    case Call::Ialltoall:
    case Call::Ialltoall_c:
    case Call::Ialltoallv:
    case Call::Ialltoallv_c:
    case Call::Ialltoallw:
    case Call::Ialltoallw_c:
    case Call::Ibarrier:
    case Call::Ibcast:
    case Call::Ibcast_c:
    case Call::Iexscan:
    case Call::Iexscan_c:
    case Call::Igather:
    case Call::Igather_c:
    case Call::Igatherv:
    case Call::Igatherv_c:
    case Call::Ineighbor_allgather:
    case Call::Ineighbor_allgather_c:
    case Call::Ineighbor_allgatherv:
    case Call::Ineighbor_allgatherv_c:
    case Call::Ineighbor_alltoall:
    case Call::Ineighbor_alltoall_c:
    case Call::Ineighbor_alltoallv:
    case Call::Ineighbor_alltoallv_c:
    case Call::Ineighbor_alltoallw:
    case Call::Ineighbor_alltoallw_c:
    case Call::Ireduce:
    case Call::Ireduce_c:
    case Call::Ireduce_scatter:
    case Call::Ireduce_scatter_c:
    case Call::Ireduce_scatter_block:
    case Call::Ireduce_scatter_block_c:
    case Call::Iscan:
    case Call::Iscan_c:
    case Call::Iscatter:
    case Call::Iscatter_c:
    case Call::Iscatterv:
    case Call::Iscatterv_c:
      return Requests::starts;
    default:
      return Requests::none;
  }
}

struct Schedules {
  wire::Schedule kind;            // of several: a reduction, if one is
  std::uint32_t reduction_scale;  // of that, rank::ReductionCost::scale
};

// In front of a call: which ones it waits for.
Schedules schedules_waited_for(Requests requests, const long* words);
// Behind it, with success. `count`: of its arguments. One that reduces does so as describe_data() has said.
void note_schedules(Requests requests, const long* words, std::size_t count, bool reduces);

}  // namespace dryfly::preload
