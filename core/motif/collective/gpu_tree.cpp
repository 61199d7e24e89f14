// Two binary trees over the nodes, in which each node is inside of one at most, and on a node a chain from the rank
// where the channel comes in. Half of a NIC's share goes by each tree, in pieces: up, where they are added, and down
// again at the same time.
//
// The trees are those of RCCL and NCCL (src/graph/trees.cc): of the first the parent of a node is the number with its
// lowest bit moved up by one, the second is its mirror image or, of an odd number of nodes, the first one node on.
#include <algorithm>
#include <bit>

#include "core/motif/collective/blocks.hpp"
#include "core/motif/collective/gpu_collective.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint32_t nobody = ~std::uint32_t{0};
constexpr std::uint64_t piece_most = 512 << 10, piece_least = 32 << 10;
constexpr std::uint64_t pieces_most = 64;  // more are run as so many: what passes a link is the same

struct Relatives {
  std::uint32_t parent = nobody;
  std::vector<std::uint32_t> children;
};

Relatives in_first_tree(std::uint32_t node, std::uint32_t nodes) {
  Relatives found;
  if (node == 0) {
    if (nodes > 1) found.children.push_back(std::bit_ceil(nodes) / 2);
    return found;
  }
  const std::uint32_t bit = node & (~node + 1);
  found.parent = (node ^ bit) | bit << 1;
  if (found.parent >= nodes) found.parent = node ^ bit;
  if (bit == 1) return found;
  found.children.push_back(node - bit / 2);
  for (std::uint32_t below = bit / 2; below > 0; below /= 2) {
    if (node + below >= nodes) continue;
    found.children.push_back(node + below);
    break;
  }
  return found;
}

Relatives in_tree(bool second, std::uint32_t node, std::uint32_t nodes) {
  if (!second) return in_first_tree(node, nodes);
  const bool mirrored = nodes % 2 == 0;
  const auto there = [&](std::uint32_t other) { return mirrored ? nodes - 1 - other : (other + nodes - 1) % nodes; };
  const auto back = [&](std::uint32_t other) { return mirrored ? nodes - 1 - other : (other + 1) % nodes; };
  Relatives found = in_first_tree(there(node), nodes);
  if (found.parent != nobody) found.parent = back(found.parent);
  for (std::uint32_t& child : found.children) child = back(child);
  return found;
}

// Pieces come from some and go on to others; `more` of the ranks that send are not known to this rank otherwise.
class Stream final : public flight::Rounds {
 public:
  Stream(std::vector<std::uint32_t> from, std::uint32_t from_tag, std::vector<std::uint32_t> to, std::uint32_t to_tag,
         Blocks pieces, std::uint32_t count)
      : from_(std::move(from)),
        to_(std::move(to)),
        from_tag_(from_tag),
        to_tag_(to_tag),
        pieces_(pieces),
        count_(count) {}

  bool round(std::uint32_t number, flight::Transfers& transfers) const override {
    // Without anybody to wait for all pieces are there from the beginning.
    if (number > (from_.empty() ? 0 : count_)) return false;
    for (std::uint32_t piece = number; piece < std::min(number + 1, count_); ++piece) {
      for (const std::uint32_t rank : from_) {
        transfers.push_back({.peer = rank, .tag = from_tag_, .bytes = pieces_.of(piece).count});
      }
    }
    if (from_.empty()) {
      for (std::uint32_t piece = 0; piece < count_; ++piece) send(piece, transfers);
    } else if (number > 0) {
      send(number - 1, transfers);
    }
    return true;
  }

 private:
  void send(std::uint32_t piece, flight::Transfers& transfers) const {
    for (const std::uint32_t rank : to_) {
      transfers.push_back(
          {.peer = rank, .tag = to_tag_, .bytes = pieces_.of(piece).count, .is_send = true, .is_awaited = false});
    }
  }

  std::vector<std::uint32_t> from_;
  std::vector<std::uint32_t> to_;
  std::uint32_t from_tag_;
  std::uint32_t to_tag_;
  Blocks pieces_;
  std::uint32_t count_;
};

// As RCCL chooses its size: smaller where there would be few of them in a tree of that depth.
std::uint64_t pieces_of(std::uint64_t bytes, std::uint64_t depth) {
  std::uint64_t piece = piece_most;
  while (bytes / piece < depth * 8 && piece > 4 * piece_least) piece /= 2;
  while (bytes / piece < depth * 4 && piece > 2 * piece_least) piece /= 2;
  while (bytes / piece < depth && piece > piece_least) piece /= 2;
  return std::clamp<std::uint64_t>((bytes + piece - 1) / piece, 1, pieces_most);
}

}  // namespace

Channels gpu_tree(const GpuShare& share) {
  const GpuPlaces& places = share.places;
  const std::uint32_t per_node = places.per_node(), node = share.place / per_node, channels = 2 * places.channels();
  const Blocks shares = Blocks::split(share.size, channels, share.element);
  const std::uint64_t depth = per_node - 1 + std::bit_width(places.nodes() - 1);
  Channels found;
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    const std::uint32_t nic = channel / 2;
    const auto rank_at = [&](std::uint32_t other_node, std::uint32_t index) {
      return share.ranks.rank(other_node * per_node + places.local(nic, index));
    };
    const std::uint32_t index = places.index(nic, share.place % per_node);
    std::vector<std::uint32_t> parents, children;
    if (index > 0) {
      parents.push_back(rank_at(node, index - 1));
    } else {
      const Relatives relatives = in_tree(channel % 2 == 1, node, places.nodes());
      if (relatives.parent != nobody) parents.push_back(rank_at(relatives.parent, 0));
      for (const std::uint32_t child : relatives.children) children.push_back(rank_at(child, 0));
    }
    if (index + 1 < per_node) children.push_back(rank_at(node, index + 1));
    const Bytes own = shares.of(channel);
    const std::uint64_t count = pieces_of(own.count, depth);
    const Blocks pieces = Blocks::split(own, static_cast<std::uint32_t>(count), share.element);
    const std::uint32_t up = share.tag(2 * channel), down = up + 1;
    const auto add = [&](const std::vector<std::uint32_t>& from, std::uint32_t from_tag,
                         const std::vector<std::uint32_t>& to, std::uint32_t to_tag) {
      found.push_back(std::make_unique<Stream>(from, from_tag, to, to_tag, pieces, static_cast<std::uint32_t>(count)));
    };
    if (parents.empty()) {
      add(children, up, children, down);
    } else {
      add(children, up, parents, up);
      add(parents, down, children, down);
    }
  }
  return found;
}

}  // namespace dryfly::motif
