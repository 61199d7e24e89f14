// What the generator can measure. Each pattern has the simulated machine to itself and answers in picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "generator/stand.hpp"

namespace dryfly::generator {

enum class Operation { send, write, read, atomic };

// One operation at a time between two NICs. `send` is half a round trip, as osu_latency counts; the others are from
// the command to its completion, as cxi_write_lat, cxi_read_lat and cxi_atomic_lat count.
std::uint64_t latency_ps(Stand& stand, Operation operation, NicId a, NicId b, Bytes size, std::uint64_t count);

// `window` operations under way at once until `count` are done, from a to b or in both directions. The time from the
// first command to the last completion.
std::uint64_t stream_ps(Stand& stand, Operation operation, NicId a, NicId b, Bytes size, std::uint64_t count,
                        std::uint64_t window, bool both_ways);

// Random rings (E4, GPCNeT's isolated latency): all ranks in a random cycle, each sends to the next one and waits for
// the message of the one before. One entry for each rank and iteration. `software` is what MPI adds on both sides.
std::vector<std::uint64_t> ring_ps(Stand& stand, const std::vector<NicId>& ranks, Bytes size, std::uint64_t rings,
                                   std::uint64_t iterations, Duration send_cost, Duration receive_cost);

// Recursive doubling with the ranks beyond a power of two folded in, as MPI libraries sum short vectors: the time
// until the last rank has the result, averaged over the iterations.
std::uint64_t allreduce_ps(Stand& stand, const std::vector<NicId>& ranks, Bytes size, std::uint64_t iterations,
                           Duration send_cost, Duration receive_cost);

// Each NIC writes `count` messages to random others, `window` at once and routed packet by packet: bytes delivered per
// second by all of them between a quarter and three quarters of the time, when nobody has finished.
double uniform_bytes_per_s(Stand& stand, const std::vector<NicId>& nics, Bytes size, std::uint64_t count,
                           std::uint64_t window, std::uint64_t seed);

}  // namespace dryfly::generator
