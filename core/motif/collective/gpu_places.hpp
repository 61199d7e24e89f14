// How libraries of collectives for GPUs see the places of a communicator: nodes with as many of them each, rings over
// the links between a node's GPUs, and channels, each of which comes into a node and leaves it by a NIC.
//
// Models what RCCL and NCCL find when they search a node for rings (docs/model/collectives.md#collectives-of-gpus):
// the slowest link is as fast as can be, and there are as many rings as links have room for; between nodes both ends of
// a channel's way through a node are at the same NIC, and ways share links as little as can be. Left out: what the
// libraries know by heart of particular nodes; further channels over the same links and NICs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/motif/collective/communicator.hpp"
#include "core/motif/job/job.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

class GpuPlaces {
 public:
  GpuPlaces(const Job& job, const Communicator& ranks);

  std::uint32_t size() const { return nodes_ * per_node_; }
  std::uint32_t nodes() const { return nodes_; }
  std::uint32_t per_node() const { return per_node_; }
  // One for each NIC that places of a node are at; on one node one for each of its rings.
  std::uint32_t channels() const { return static_cast<std::uint32_t>(ways_.size()); }
  // Around the ring of a channel, node by node.
  std::uint32_t position(std::uint32_t channel, std::uint32_t place) const;
  std::uint32_t at(std::uint32_t channel, std::uint32_t position) const;
  // Of a node, from where the channel comes into it to where it leaves it.
  std::uint32_t local(std::uint32_t channel, std::uint32_t index) const { return ways_[channel][index]; }
  std::uint32_t index(std::uint32_t channel, std::uint32_t local) const;
  // Of the slowest link of a ring; 0: nobody has said.
  Rate slowest() const { return slowest_; }

 private:
  // Rates between places, and of those with links of their own; none: nobody has said, or they are too many.
  void find_rings(const std::vector<std::uint64_t>& any, const std::vector<std::uint64_t>& joined);
  void find_ways(const Job& job, const Communicator& ranks, const std::vector<std::uint64_t>& any,
                 const std::vector<std::uint64_t>& joined);
  std::vector<std::uint32_t> in_order(const std::vector<std::uint32_t>& firsts, std::uint32_t last) const;

  std::uint32_t per_node_;
  std::uint32_t nodes_;
  std::vector<std::vector<std::uint32_t>> ways_;  // of each channel, the places of a node
  Rate slowest_{};
};

}  // namespace dryfly::motif
