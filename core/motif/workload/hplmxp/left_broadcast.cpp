#include "core/motif/workload/hplmxp/left_broadcast.hpp"

#include <algorithm>
#include <bit>

#include "core/motif/collective/tree.hpp"

namespace dryfly::motif::hplmxp {
namespace {

constexpr std::uint32_t few_ranks = 8;
constexpr std::uint64_t few_bytes = 12288;
constexpr std::uint64_t doubling_bytes_most = 524288;
constexpr std::uint32_t rounds_apart = 64;  // that have tags of their own
constexpr std::uint32_t steps_apart = 1024;

}  // namespace

LeftBroadcast::LeftBroadcast(const Communicator& row, std::uint32_t place, std::uint32_t root, std::uint64_t bytes,
                             std::uint64_t step)
    : row_(row),
      root_(root),
      place_(row.relative(place, root)),
      bytes_(bytes),
      part_((bytes + row.size() - 1) / row.size()),
      tag_(1 + static_cast<std::uint32_t>(step % steps_apart) * rounds_apart) {
  if (row.size() < few_ranks || bytes < few_bytes) {
    way_ = Way::tree;
  } else {
    way_ = std::has_single_bit(row.size()) && bytes <= doubling_bytes_most ? Way::doubling : Way::ring;
  }
}

std::uint64_t LeftBroadcast::between(std::uint32_t first, std::uint32_t last) const {
  return std::min(bytes_, last * part_) - std::min(bytes_, first * part_);
}

void LeftBroadcast::send(flight::Transfers& transfers, std::uint32_t to, std::uint32_t round,
                         std::uint64_t bytes) const {
  transfers.push_back({row_.relative_rank(to, root_), tag_ + round % rounds_apart, bytes, true});
}

void LeftBroadcast::receive(flight::Transfers& transfers, std::uint32_t from, std::uint32_t round,
                            std::uint64_t bytes) const {
  transfers.push_back({row_.relative_rank(from, root_), tag_ + round % rounds_apart, bytes, false});
}

// To the children, all of it, or the parts of the places below them. MPICH's first child of any place gets all that
// lies behind it, whoever needs it.
void LeftBroadcast::give(flight::Transfers& transfers) const {
  const std::uint32_t count = row_.size();
  std::uint32_t end = count;
  for (const std::uint32_t child : Tree(Shape::binomial, count, 2).children(place_)) {
    send(transfers, child, 0, way_ == Way::tree ? bytes_ : between(child, end));
    end = child;
  }
}

bool LeftBroadcast::round(std::uint32_t number, flight::Transfers& transfers) const {
  const std::uint32_t count = row_.size();
  if (count == 1 || bytes_ == 0) return false;
  if (number == 0) {
    if (place_ == 0) return true;
    receive(transfers, Tree(Shape::binomial, count, 2).parent(place_), 0,
            way_ == Way::tree ? bytes_ : between(place_, count));
    return true;
  }
  if (number == 1) {
    give(transfers);
    return true;
  }
  if (way_ == Way::tree) return false;
  const std::uint32_t turn = number - 2;
  if (way_ == Way::ring) {
    if (turn + 1 >= count) return false;
    const std::uint32_t mine = (place_ + count - turn % count) % count;
    const std::uint32_t theirs = (mine + count - 1) % count;
    send(transfers, (place_ + 1) % count, 1 + turn, between(mine, mine + 1));
    receive(transfers, (place_ + count - 1) % count, 1 + turn, between(theirs, theirs + 1));
    return true;
  }
  const std::uint32_t distance = 1U << turn;
  if (distance >= count) return false;
  const std::uint32_t mine = place_ & ~(distance - 1);
  const std::uint32_t theirs = mine ^ distance;
  send(transfers, place_ ^ distance, 1 + turn, between(mine, mine + distance));
  receive(transfers, place_ ^ distance, 1 + turn, between(theirs, theirs + distance));
  return true;
}

}  // namespace dryfly::motif::hplmxp
