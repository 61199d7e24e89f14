// What the generator can measure. Each pattern has the simulated machine to itself and answers in picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "core/host/cpu_costs.hpp"
#include "core/motif/stand.hpp"

namespace dryfly::generator {

enum class Verb { send, write, read, atomic };

// One command at a time between two NICs. `send` is half a round trip, as osu_latency counts; the others are from
// the command to its completion, as cxi_write_lat, cxi_read_lat and cxi_atomic_lat count. With a gap the next is given
// so long after the last is over. One entry for each command.
std::vector<std::uint64_t> latencies_ps(Stand& stand, Verb verb, NicId a, NicId b, Bytes size, std::uint64_t count,
                                        Duration gap = {});

// `window` commands under way at once until `count` are done, from a to b or in both directions. The time from the
// first command to the last completion.
std::uint64_t stream_ps(Stand& stand, Verb verb, NicId a, NicId b, Bytes size, std::uint64_t count,
                        std::uint64_t window, bool both_ways);

// GPCNeT's random rings (docs/model/measurements.md#gpcnet): all ranks in a random cycle, each exchanges
// `outstanding` messages with either neighbour, both ways, and goes on when all of its own are complete; with
// `barrier` when everybody is.
struct Ring {
  Bytes size;
  std::uint64_t rings = 1;
  std::uint64_t warmup = 1;      // iterations of a ring that are not counted, before
  std::uint64_t iterations = 1;  // those that are
  std::uint64_t outstanding = 1;
  bool barrier = false;  // a recursive doubling of 8 bytes; needs a power of two of ranks
};
struct RingTimes {
  // One entry for each ring, iteration and rank: from its first call to its last completion.
  std::vector<std::uint64_t> iterations_ps;
  // One for each ring and rank: all of its iterations together.
  std::vector<std::uint64_t> loops_ps;
};
RingTimes ring_ps(Stand& stand, const std::vector<NicId>& ranks, const Ring& ring, const CpuCosts& costs);

// Recursive doubling with the ranks beyond a power of two folded in, as MPI libraries sum short vectors: the time
// until the last rank has the result, averaged over the iterations, each of which begins when all is quiet.
std::uint64_t allreduce_ps(Stand& stand, const std::vector<NicId>& ranks, Bytes size, std::uint64_t iterations,
                           const CpuCosts& costs);

// The same in a loop, as programs have it: each rank begins the next when it has the result of the last. One entry for
// each iteration and rank, from its call to its result; the first iterations are not counted.
struct Loop {
  Bytes size;
  std::uint64_t warmup = 1;
  std::uint64_t iterations = 1;
};
std::vector<std::uint64_t> allreduces_ps(Stand& stand, const std::vector<NicId>& ranks, const Loop& loop,
                                         const CpuCosts& costs);

// Bandwidth of many pairs at once, as osu_mbw_mr and mbw_mr have it: rank r of the first half sends a window of
// messages to rank r of the second, and goes on when all have left and the peer has answered that all have come. All
// begin at once, as behind a barrier, with noise too. One entry for each pair: when its source is through.
struct Windows {
  Bytes size;
  std::uint64_t count = 1;  // of windows
  std::uint64_t window = 64;
};
std::vector<std::uint64_t> windows_ps(Stand& stand, const std::vector<NicId>& ranks, const Windows& plan,
                                      const CpuCosts& costs);

// Each NIC writes `count` messages to random others, `window` at once and routed packet by packet: bytes delivered per
// second by all of them between a quarter and three quarters of the time, when nobody has finished.
double uniform_bytes_per_s(Stand& stand, const std::vector<NicId>& nics, Bytes size, std::uint64_t count,
                           std::uint64_t window, std::uint64_t seed);

}  // namespace dryfly::generator
