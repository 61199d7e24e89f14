// As oneCCL's algorithm topo: ranks of a node give each other the parts that each will add up, all at once over their
// links; then each goes around a ring of its likes on the other nodes; and the results are given to all of the node.
#include "core/motif/collective/blocks.hpp"
#include "core/motif/collective/gpu_collective.hpp"

namespace dryfly::motif {
namespace {

class Topo final : public flight::Rounds {
 public:
  explicit Topo(const GpuShare& share)
      : ranks_(share.ranks),
        per_node_(share.places.per_node()),
        nodes_(share.places.nodes()),
        node_(share.place / per_node_),
        local_(share.place % per_node_),
        tag_(share.tag(0)),
        shares_(Blocks::split(share.size, per_node_, share.element)),
        parts_(Blocks::split(shares_.of(local_), nodes_, share.element)) {}

  bool round(std::uint32_t number, flight::Transfers& transfers) const override {
    const std::uint32_t around = 2 * (nodes_ - 1);
    if (number > around + 1) return false;
    if (number == 0 || number == around + 1) {
      on_node(number == 0, transfers);
      return true;
    }
    const std::uint32_t sent = (node_ + 2 * nodes_ - 1 - (number - 1) % nodes_) % nodes_;
    const auto like = [&](std::uint32_t node) { return ranks_.rank(node % nodes_ * per_node_ + local_); };
    transfers.push_back(
        {.peer = like(node_ + nodes_ - 1), .tag = tag_ + 1, .bytes = parts_.of((sent + nodes_ - 1) % nodes_).count});
    transfers.push_back({.peer = like(node_ + 1),
                         .tag = tag_ + 1,
                         .bytes = parts_.of(sent).count,
                         .is_send = true,
                         .is_awaited = false});
    return true;
  }

 private:
  void on_node(bool scatters, flight::Transfers& transfers) const {
    for (std::uint32_t step = 1; step < per_node_; ++step) {
      const std::uint32_t other = (local_ + step) % per_node_;
      const std::uint32_t peer = ranks_.rank(node_ * per_node_ + other), tag = tag_ + (scatters ? 0 : 2);
      const std::uint64_t own = shares_.of(local_).count, others = shares_.of(other).count;
      transfers.push_back({.peer = peer, .tag = tag, .bytes = scatters ? own : others});
      transfers.push_back(
          {.peer = peer, .tag = tag, .bytes = scatters ? others : own, .is_send = true, .is_awaited = false});
    }
  }

  Communicator ranks_;
  std::uint32_t per_node_;
  std::uint32_t nodes_;
  std::uint32_t node_;
  std::uint32_t local_;
  std::uint32_t tag_;
  Blocks shares_;
  Blocks parts_;
};

}  // namespace

Channels gpu_topo(const GpuShare& share) {
  Channels found;
  found.push_back(std::make_unique<Topo>(share));
  return found;
}

}  // namespace dryfly::motif
