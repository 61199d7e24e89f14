// How libraries of collectives for GPUs see the places of a communicator: nodes with as many of them each, rings over
// the links between a node's GPUs, and channels, each of which leaves a node by another NIC.
//
// Models what RCCL and NCCL find when they search a node for rings (docs/model/collectives.md#collectives-of-gpus):
// the slowest link is as fast as can be, and there are as many rings as links have room for. Left out: what the
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
  std::uint32_t channels() const { return channels_; }
  // Around the ring of a channel, node by node: the last of a node is at the channel's NIC.
  std::uint32_t position(std::uint32_t channel, std::uint32_t place) const;
  std::uint32_t at(std::uint32_t channel, std::uint32_t position) const;
  // Of a node, from the one at the channel's NIC on.
  std::uint32_t local(std::uint32_t channel, std::uint32_t index) const;
  std::uint32_t index(std::uint32_t channel, std::uint32_t local) const;
  // Of the slowest link of a ring; 0: nobody has said.
  Rate slowest() const { return slowest_; }

 private:
  void find_rings(const Job& job, const Communicator& ranks);
  void find_channels(const Job& job, const Communicator& ranks);

  std::uint32_t per_node_;
  std::uint32_t nodes_;
  std::uint32_t channels_ = 1;
  std::vector<std::vector<std::uint32_t>> rings_;  // places of a node
  std::vector<std::uint32_t> leaves_;              // of each channel, where in its ring the one at its NIC is
  Rate slowest_{};
};

}  // namespace dryfly::motif
