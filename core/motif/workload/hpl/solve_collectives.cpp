#include "core/motif/workload/hpl/solve_collectives.hpp"

#include <bit>

#include "core/motif/workload/hpl/problem.hpp"

namespace dryfly::motif::hpl {
namespace {

constexpr std::uint64_t tree_bytes_most = 2048;  // docs/model/skeleton-hpl.md#solve

// The elements in a power of two of equal pieces, the last of which has the rest as well, as halving and doubling
// exchange them.
struct Pieces {
  std::uint64_t elements = 0;
  std::uint32_t count = 1;

  Bytes bytes(std::uint32_t begin, std::uint32_t end) const {
    const std::uint64_t each = elements / count;
    return Bytes{((end == count ? elements : each * end) - each * begin) * element_bytes};
  }
};

// Which pieces a process has, halved or doubled in each round.
struct Share {
  Pieces pieces;
  std::uint32_t place = 0;
  std::uint32_t first = 0;
  std::uint32_t middle = 0;
  std::uint32_t end = 0;

  // What it gives and gets in exchange with the place `distance` away; `end` has been set.
  Bytes halve(std::uint32_t distance) {
    const std::uint32_t half = pieces.count / (2 * distance);
    const bool lower = (place & distance) == 0;
    const std::uint32_t cut = first + half;
    const Bytes given = lower ? pieces.bytes(cut, end) : pieces.bytes(first, cut);
    (lower ? end : first) = cut;
    return given;
  }
  Bytes owned() const { return pieces.bytes(first, end); }
  void double_up(std::uint32_t distance) {
    const std::uint32_t half = pieces.count / (2 * distance);
    if ((place & distance) == 0) {
      end += half;
    } else {
      first -= half;
    }
  }
};

Task swap_with(Rank& me, Communicator ranks, std::uint32_t peer, std::uint32_t step, Bytes size) {
  const std::uint32_t other = ranks.rank(peer);
  co_await me.sendrecv(other, other, ranks.tag(step), size);
}

Task reduce_by_tree(Rank& me, Communicator ranks, std::uint32_t root, std::uint64_t elements) {
  const std::uint32_t size = ranks.size();
  const std::uint32_t place = (ranks.place_of(me) + size - root) % size;
  const auto peer = [&](std::uint32_t relative) { return ranks.rank((relative + root) % size); };
  for (std::uint32_t distance = 1; distance < size; distance *= 2) {
    if ((place & distance) != 0) {
      co_await me.send(peer(place & ~distance), ranks.tag(0), Bytes{elements * element_bytes});
      co_return;
    }
    if ((place | distance) < size) co_await me.recv(peer(place | distance), ranks.tag(0));
  }
}

// Of the first processes those with odd places give theirs to those before them. A root among these takes the place of
// the first process once the pieces are reduced.
Task reduce_by_halves(Rank& me, Communicator ranks, std::uint32_t root, std::uint64_t elements) {
  const std::uint32_t rank = ranks.place_of(me);
  const std::uint32_t power = std::bit_floor(ranks.size());
  const std::uint32_t further = ranks.size() - power;
  const auto rank_at = [&](std::uint32_t place) { return place < further ? 2 * place : place + further; };
  const bool root_is_out = root < 2 * further && root % 2 != 0;
  bool takes_part = true;
  if (rank < 2 * further) {
    takes_part = rank % 2 == 0;
    if (!takes_part) co_await me.send(ranks.rank(rank - 1), ranks.tag(1), Bytes{elements * element_bytes});
    if (takes_part) co_await me.recv(ranks.rank(rank + 1), ranks.tag(1));
  }
  Share share{.pieces = {elements, power}, .place = rank < 2 * further ? rank / 2 : rank - further, .end = power};
  for (std::uint32_t distance = 1; takes_part && distance < power; distance *= 2) {
    co_await swap_with(me, ranks, rank_at(share.place ^ distance), 2, share.halve(distance));
  }
  if (root_is_out && rank == 0) {
    co_await me.send(ranks.rank(root), ranks.tag(3), share.owned());
    co_return;
  }
  if (root_is_out && rank == root) {
    co_await me.recv(ranks.rank(0), ranks.tag(3));
    takes_part = true;
    share = Share{.pieces = {elements, power}, .place = 0, .end = 1};
  }
  if (!takes_part) co_return;
  const std::uint32_t root_place = root_is_out ? 0 : root < 2 * further ? root / 2 : root - further;
  const auto holder = [&](std::uint32_t place) { return root_is_out && place == 0 ? root : rank_at(place); };
  for (std::uint32_t distance = power / 2; distance > 0; distance /= 2) {
    const std::uint32_t peer = ranks.rank(holder(share.place ^ distance));
    if ((share.place & distance) != (root_place & distance)) {
      co_await me.send(peer, ranks.tag(4), share.owned());
      co_return;
    }
    co_await me.recv(peer, ranks.tag(4));
    share.double_up(distance);
  }
}

}  // namespace

Task reduce(Rank& me, Communicator ranks, std::uint32_t root, std::uint64_t elements) {
  if (elements * element_bytes <= tree_bytes_most || elements < std::bit_floor(ranks.size())) {
    co_await reduce_by_tree(me, ranks, root, elements);
  } else {
    co_await reduce_by_halves(me, ranks, root, elements);
  }
}

Task broadcast_by_tree(Rank& me, Communicator ranks, std::uint32_t root, std::uint64_t elements) {
  const std::uint32_t size = ranks.size();
  const std::uint32_t place = (ranks.place_of(me) + size - root) % size;
  const auto peer = [&](std::uint32_t relative) { return ranks.rank((relative + root) % size); };
  const std::uint32_t lowest = place == 0 ? std::bit_ceil(size) : place & (~place + 1);
  if (place != 0) co_await me.recv(peer(place - lowest), ranks.tag(5));
  for (std::uint32_t distance = lowest / 2; distance > 0; distance /= 2) {
    if (place + distance < size) {
      co_await me.send(peer(place + distance), ranks.tag(5), Bytes{elements * element_bytes});
    }
  }
}

// Rabenseifner: of the first processes those with even places take part through the next.
Task allreduce_long(Rank& me, Communicator ranks, std::uint64_t elements) {
  const std::uint32_t rank = ranks.place_of(me);
  const std::uint32_t power = std::bit_floor(ranks.size());
  const std::uint32_t further = ranks.size() - power;
  const auto rank_at = [&](std::uint32_t place) { return place < further ? 2 * place + 1 : place + further; };
  const bool folds = rank < 2 * further;
  const Bytes all{elements * element_bytes};
  if (folds && rank % 2 == 0) {
    co_await me.send(ranks.rank(rank + 1), ranks.tag(6), all);
    co_await me.recv(ranks.rank(rank + 1), ranks.tag(6));
    co_return;
  }
  if (folds) co_await me.recv(ranks.rank(rank - 1), ranks.tag(6));
  Share share{.pieces = {elements, power}, .place = folds ? rank / 2 : rank - further, .end = power};
  for (std::uint32_t distance = 1; distance < power; distance *= 2) {
    co_await swap_with(me, ranks, rank_at(share.place ^ distance), 7, share.halve(distance));
  }
  for (std::uint32_t distance = power / 2; distance > 0; distance /= 2) {
    co_await swap_with(me, ranks, rank_at(share.place ^ distance), 8, share.owned());
    share.double_up(distance);
  }
  if (folds) co_await me.send(ranks.rank(rank - 1), ranks.tag(6), all);
}

}  // namespace dryfly::motif::hpl
