// Collectives of GPU buffers as RCCL, NCCL and oneCCL run them, which go on while a rank computes: for each channel a
// schedule of rounds of its own. A file for each algorithm: gpu_ring.cpp, gpu_tree.cpp, gpu_topo.cpp.
//
// Models docs/model/collectives.md#collectives-of-gpus. A round begins when what the one before it receives is there;
// what a rank sends it does not wait for. A ring's loops over a long vector are one with larger parts, for they follow
// each other without a pause. Left out: the protocols LL and LL128, which send flags with their data; what a reduction
// takes of a GPU's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/motif/collective/collective.hpp"
#include "core/motif/collective/gpu_places.hpp"
#include "core/motif/flight/traffic.hpp"

namespace dryfly::motif {

enum class GpuAlgorithm : std::uint8_t { ring, tree, topo, tuned };

// A rank's part of one, without the times: its channels' rounds.
using Channels = std::vector<std::unique_ptr<flight::Rounds>>;

struct GpuShare {
  const GpuPlaces& places;
  const Communicator& ranks;
  std::uint32_t place;
  Collective what;
  Bytes size;  // as in collectives.hpp
  Bytes element;
  std::uint32_t number;  // tells collectives apart that are under way at once

  std::uint32_t tag(std::uint32_t channel) const { return ranks.tag(number * 128 + channel); }
};

Channels gpu_ring(const GpuShare& share);
Channels gpu_tree(const GpuShare& share);
Channels gpu_topo(const GpuShare& share);

// Whether RCCL's model of itself has the tree faster than the ring, for an all-reduction.
bool tree_is_tuned(const GpuPlaces& places, Rate nic, Bytes size);

class GpuCollective {
 public:
  GpuCollective(Rank& me, const Communicator& ranks, const CollectiveCall& call, GpuAlgorithm algorithm,
                std::uint32_t number = 0);

  // May be started anew when it is over.
  void start(flight::Traffic& traffic);
  Task wait(Rank& me, flight::Traffic& traffic);
  // That this rank sends.
  std::uint64_t bytes() const;

 private:
  Channels channels_;
  std::vector<flight::Schedule> schedules_;
};

// As an algorithm among others.
Task run_on_gpus(Rank& me, Communicator ranks, CollectiveCall call, GpuAlgorithm algorithm);

}  // namespace dryfly::motif
