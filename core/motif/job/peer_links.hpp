// What ranks of a node with a GPU each send one another over the links between their GPUs. Models
// docs/model/skeletons.md#gpus-of-a-node: one copy after another on the way from one GPU to another, each way by
// itself; two GPUs without a link of their own use those of a GPU between them. Left out: ways over two GPUs and more,
// which take nothing of the links, and what NICs take of a link.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/motif/job/placement.hpp"
#include "core/nic/gpu_copies.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

// Ranks that have a GPU each, whose buffers messages come from and go to (docs/model/skeletons.md#gpus-of-a-node).
struct GpuCosts {
  std::uint32_t count = 0;  // of a node; 0: messages are of the processors' memory
  GpuCopies copies{};
  std::vector<bool> joined{};  // by links of their own, GPU a and b: [a * count + b]
  Duration step{};             // from the last byte at a GPU of the node to what it does with it
  Duration post{};             // until a processor has seen what a GPU wants to have sent
  Duration launch{};           // of a collective
  Rate nic{};

  static GpuCosts read(const Spec& spec, Duration step, Duration post, const std::string& joined);
  std::uint32_t of(std::uint32_t local, std::uint32_t per_node) const { return local * count / per_node; }
  // One with itself too.
  bool are_joined(std::uint32_t one, std::uint32_t other) const { return one == other || joined[one * count + other]; }
  Rate rate(std::uint32_t one, std::uint32_t other) const {
    return copies.rate({.from = static_cast<std::uint8_t>(one + 1), .to = static_cast<std::uint8_t>(other + 1)});
  }
};

class PeerLinks {
 public:
  PeerLinks(const GpuCosts& gpus, const Placement& placement)
      : per_node_(placement.per_node()), free_(std::size_t{placement.nodes()} * gpus.count * gpus.count) {}

  // When the links have carried that too, between ranks of a node, which begins no sooner than at that instant.
  Instant carry(const GpuCosts& gpus, std::uint32_t source, std::uint32_t target, Bytes size, Instant from);

 private:
  std::uint32_t per_node_;
  std::vector<Instant> free_;  // of each node, from each of its GPUs to each: when it has carried all that it was given
};

}  // namespace dryfly::motif
