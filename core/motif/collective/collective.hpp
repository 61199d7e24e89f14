// A collective as a program calls it, and the algorithm that is to run it: what MPI libraries decide from the call's
// sizes (selection.hpp) or a user names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/motif/collective/communicator.hpp"
#include "core/motif/job/task.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

enum class Collective : std::uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  allgather,
  allgatherv,
  reduce_scatter,
  reduce_scatter_block,
  alltoall,
  gather,
  scatter,
};
inline constexpr std::size_t collective_count = 11;

// Throws SpecError, which names those that there are.
Collective collective_named(std::string_view name);
std::string_view name_of(Collective collective);

struct CollectiveCall {
  Collective what = Collective::barrier;
  Bytes size;        // as in collectives.hpp
  Bytes element{1};  // of the data type
  std::uint32_t root = 0;

  // Of all ranks together, in the way in which libraries count it.
  std::uint64_t total(std::uint32_t ranks) const { return size.count * ranks; }
  std::uint64_t elements() const { return size.count / (element.count > 0 ? element.count : 1); }
};

struct Algorithm;
class Selection;

// An algorithm with what it can be told.
struct Choice {
  const Algorithm* algorithm = nullptr;
  std::uint32_t fan = 0;     // children of a tree's rank, chains, partners of a round; 0: as usual
  Bytes segment;             // 0: none
  std::uint32_t window = 0;  // partners at a time; 0: all
};

struct Algorithm {
  Collective what;
  std::string_view name;
  // Collectives within this one are chosen by the selection.
  Task (*run)(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice& how, const Selection& selection);
  std::uint32_t usual_fan = 2;
  bool two_levels = false;  // chosen only where several nodes have several ranks each
  std::uint32_t least_fan = 1;
  std::uint64_t bytes_most = UINT64_MAX;  // of a vector; for a longer one it is not chosen
};

std::span<const Algorithm> algorithms();
// Throws SpecError, which names those that there are for it.
const Algorithm& algorithm_named(Collective collective, std::string_view name);
// Throws SpecError where the algorithm cannot be told that. A fan of 0 becomes the usual one.
void complete(Choice& choice);

// The selection has to outlive it.
Task run_collective(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection);
inline Task run_collective(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice& how,
                           const Selection& selection) {
  return how.algorithm->run(me, ranks, call, how, selection);
}

}  // namespace dryfly::motif
