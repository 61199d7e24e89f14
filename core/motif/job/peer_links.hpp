// What ranks of a node with a GPU each send one another over the links between their GPUs. Models
// docs/model/skeletons.md#gpus-of-a-node: one copy after another on the way from one GPU to another, each way by
// itself. Left out: that pairs without a link of their own share those of the way over others, and what NICs take of a
// link.
#pragma once

#include <algorithm>
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
  Rate rate(std::uint32_t one, std::uint32_t other) const {
    return copies.rate({.from = static_cast<std::uint8_t>(one + 1), .to = static_cast<std::uint8_t>(other + 1)});
  }
};

class PeerLinks {
 public:
  PeerLinks(const GpuCosts& gpus, const Placement& placement)
      : per_node_(placement.per_node()), free_(gpus.count > 0 ? std::size_t{placement.ranks()} * per_node_ : 0) {}

  bool any() const { return !free_.empty(); }
  // When the link has carried that too, which begins no sooner than at that instant.
  Instant carry(const GpuCosts& gpus, std::uint32_t source, std::uint32_t target, Bytes size, Instant from) {
    const std::uint32_t local = target % per_node_;
    const Rate rate = gpus.rate(gpus.of(source % per_node_, per_node_), gpus.of(local, per_node_));
    Instant& free = free_[std::size_t{source} * per_node_ + local];
    return free = std::max(free, from) + transmission_time(size, rate);
  }

 private:
  std::uint32_t per_node_;
  std::vector<Instant> free_;  // of each rank to each of its node: when it has carried all that it was given
};

}  // namespace dryfly::motif
