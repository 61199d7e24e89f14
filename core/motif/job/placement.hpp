// Where the ranks of a skeleton are: so many on each node, block by block, on the first nodes of the machine or on
// those of a list; those of a node spread over its NICs as Cray MPICH's BLOCK policy has it
// (docs/model/mpi.md): rank l of p takes NIC l * nics / p.
#pragma once

#include <cstdint>
#include <vector>

#include "core/topology/dragonfly.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

class Placement {
 public:
  // SpecError: more nodes than the machine has, or nodes without NICs.
  Placement(const Dragonfly& topology, std::uint32_t nodes, std::uint32_t ranks_per_node);
  Placement(const Dragonfly& topology, std::vector<NodeId> nodes, std::uint32_t ranks_per_node);

  const Dragonfly& topology() const { return *topology_; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(nodes_.size()) * per_node_; }
  std::uint32_t per_node() const { return per_node_; }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }
  NodeId node_of(std::uint32_t rank) const { return nodes_[rank / per_node_]; }
  // Each node is the machine's next one.
  bool is_in_order() const;
  std::uint32_t nics_of_node_of(std::uint32_t rank) const { return topology_->nics_per_node(node_of(rank)); }
  NicId nic_of(std::uint32_t rank) const {
    const std::uint32_t nics = topology_->nics_per_node(node_of(rank));
    const std::uint64_t local = rank % per_node_;
    return topology_->nic_of(node_of(rank), static_cast<std::uint32_t>(local * nics / per_node_));
  }
  // Of a choice of the node's NICs, in the same way. SpecError: it has not so many.
  NicId nic_of(std::uint32_t rank, const std::vector<std::uint32_t>& nics) const;

 private:
  const Dragonfly* topology_;
  std::vector<NodeId> nodes_;
  std::uint32_t per_node_;
};

}  // namespace dryfly::motif
