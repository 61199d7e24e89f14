#include "core/motif/job/placement.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/spec/spec.hpp"

namespace dryfly::motif {
namespace {

std::vector<NodeId> first_nodes(const Dragonfly& topology, std::uint32_t count) {
  if (count == 0 || count > topology.node_count()) {
    throw SpecError("nodes = " + std::to_string(count) + ": accepted is 1 to " + std::to_string(topology.node_count()) +
                    ", the nodes of this machine");
  }
  std::vector<NodeId> nodes(count);
  for (std::uint32_t node = 0; node < count; ++node) nodes[node] = {node};
  return nodes;
}

constexpr std::uint32_t most_ranks_per_node = 1024;

}  // namespace

Placement::Placement(const Dragonfly& topology, std::uint32_t nodes, std::uint32_t ranks_per_node)
    : Placement(topology, first_nodes(topology, nodes), ranks_per_node) {}

Placement::Placement(const Dragonfly& topology, std::vector<NodeId> nodes, std::uint32_t ranks_per_node)
    : topology_(&topology), nodes_(std::move(nodes)), per_node_(ranks_per_node) {
  if (per_node_ == 0 || per_node_ > most_ranks_per_node) {
    throw SpecError("ppn = " + std::to_string(per_node_) + ": accepted is 1 to " + std::to_string(most_ranks_per_node));
  }
  for (const NodeId node : nodes_) {
    if (node.value >= topology.node_count() || topology.nics_per_node(node) == 0) {
      throw SpecError("node " + std::to_string(node.value) + ": this machine has no such node with NICs");
    }
  }
}

bool Placement::is_in_order() const {
  const auto is_gap = [](NodeId one, NodeId next) { return next.value != one.value + 1; };
  return std::ranges::adjacent_find(nodes_, is_gap) == nodes_.end();
}

NicId Placement::nic_of(std::uint32_t rank, const std::vector<std::uint32_t>& nics) const {
  const std::uint64_t local = rank % per_node_;
  const std::uint32_t chosen = nics[local * nics.size() / per_node_];
  const std::uint32_t there = topology_->nics_per_node(node_of(rank));
  if (chosen >= there) {
    throw SpecError("NIC " + std::to_string(chosen) + ": accepted is 0 to " + std::to_string(there - 1) +
                    ", the NICs of a node");
  }
  return topology_->nic_of(node_of(rank), chosen);
}

}  // namespace dryfly::motif
