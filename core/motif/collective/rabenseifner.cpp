// Rabenseifner's algorithms: a vector is reduced by halves, so that each of 2^k ranks has the result of its part; then
// the parts are gathered, by halves as well.
#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/fold.hpp"
#include "core/motif/collective/halving.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {
namespace {

struct Vector {
  Bytes size;
  Bytes element;
  Halves halves;
  bool odd_stay;  // of the pairs that do not fit into a power of two; in MPICH's all-reduction

  Fold fold(std::uint32_t places) const { return {places, odd_stay}; }
  Part part(const Fold& fold, std::uint32_t number, std::uint32_t steps) const {
    Part part(size, fold.numbers(), element, halves);
    for (std::uint32_t step = 0; step < steps; ++step) part = number >> step & 1 ? part.upper() : part.lower();
    return part;
  }
  bool too_short(const Fold& fold) const {
    return halves == Halves::of_elements && size.count / std::max<std::uint64_t>(element.count, 1) < fold.numbers();
  }
};

// Of each pair one has the sum of both in the end: the other gives it all, or they share the work and it gives half.
Task fold_in(Rank& me, Communicator ranks, Vector vector) {
  const std::uint32_t place = ranks.place_of(me);
  const Fold fold = vector.fold(ranks.size());
  const std::uint32_t partner = ranks.rank(place ^ 1);
  const bool stays = fold.number(place) != Fold::out;
  if (vector.halves == Halves::of_blocks) {
    if (!stays) co_await me.send(partner, ranks.tag(0), vector.size);
    if (stays) co_await me.recv(partner, ranks.tag(0));
    if (stays) co_await combine(me, vector.size);
    co_return;
  }
  const Part whole(vector.size, 2, vector.element, vector.halves);
  const Bytes lower = whole.lower().size();
  const Bytes upper = whole.upper().size();
  co_await exchange(me, partner, stays ? upper : lower, partner, ranks.tag(0));
  co_await combine(me, stays ? lower : upper);
  if (!stays) co_await me.send(partner, ranks.tag(1), upper);
  if (stays) co_await me.recv(partner, ranks.tag(1));
}

Task reduce_by_halves(Rank& me, Communicator ranks, Vector vector, std::uint32_t number) {
  const Fold fold = vector.fold(ranks.size());
  std::uint32_t step = 0;
  for (std::uint32_t distance = 1; distance < fold.numbers(); distance *= 2, ++step) {
    const std::uint32_t peer = ranks.rank(fold.place(number ^ distance));
    co_await exchange(me, peer, vector.part(fold, number ^ distance, step + 1).size(), peer, ranks.tag(2));
    co_await combine(me, vector.part(fold, number, step + 1).size());
  }
}

}  // namespace

Task rabenseifner_allreduce(Rank& me, Communicator ranks, Bytes size, Bytes element, Halves halves) {
  const std::uint32_t place = ranks.place_of(me);
  const Vector vector{size, element, halves, halves == Halves::of_blocks};
  const Fold fold = vector.fold(ranks.size());
  if (vector.too_short(fold)) {
    const Tree star(Shape::linear, ranks.size(), 1);
    co_await tree_reduce(me, ranks, size, 0, star, Bytes{});
    co_await tree_bcast(me, ranks, size, 0, star, Bytes{});
    co_return;
  }
  if (fold.paired(place)) co_await fold_in(me, ranks, vector);
  const std::uint32_t number = fold.number(place);
  if (number == Fold::out) {
    co_await me.recv(ranks.rank(place ^ 1), ranks.tag(4));
    co_return;
  }
  co_await reduce_by_halves(me, ranks, vector, number);
  std::uint32_t step = static_cast<std::uint32_t>(std::bit_width(fold.numbers())) - 1;
  for (std::uint32_t distance = fold.numbers() / 2; distance > 0; distance /= 2, --step) {
    const std::uint32_t peer = ranks.rank(fold.place(number ^ distance));
    co_await exchange(me, peer, vector.part(fold, number, step).size(), peer, ranks.tag(3));
  }
  if (fold.paired(place)) co_await me.send(ranks.rank(place ^ 1), ranks.tag(4), size);
}

Task rabenseifner_reduce(Rank& me, Communicator ranks, Bytes size, Bytes element, std::uint32_t root, Halves halves) {
  const std::uint32_t place = ranks.place_of(me);
  const Vector vector{size, element, halves, false};
  const Fold fold = vector.fold(ranks.size());
  if (vector.too_short(fold) || fold.numbers() < 2) {
    co_await tree_reduce(me, ranks, size, root, Tree(Shape::linear, ranks.size(), 1), Bytes{});
    co_return;
  }
  if (fold.paired(place)) co_await fold_in(me, ranks, vector);
  std::uint32_t number = fold.number(place);
  if (number != Fold::out) co_await reduce_by_halves(me, ranks, vector, number);
  // A root that has dropped out takes the place of number 0.
  const std::uint32_t steps = static_cast<std::uint32_t>(std::bit_width(fold.numbers())) - 1;
  const bool root_out = fold.number(root) == Fold::out;
  const std::uint32_t root_number = root_out ? 0 : fold.number(root);
  if (root_out && number == 0) {
    co_await me.send(ranks.rank(root), ranks.tag(3), vector.part(fold, 0, steps).size());
    co_return;
  }
  if (root_out && place == root) {
    co_await me.recv(ranks.rank(fold.place(0)), ranks.tag(3));
    number = 0;
  }
  if (number == Fold::out) co_return;
  for (std::uint32_t step = steps; step-- > 0;) {
    const std::uint32_t other = number ^ (1U << step);
    const std::uint32_t peer = ranks.rank(root_out && other == 0 ? root : fold.place(other));
    if (other >> step == root_number >> step) {
      co_await me.send(peer, ranks.tag(4), vector.part(fold, number, step + 1).size());
      break;
    }
    co_await me.recv(peer, ranks.tag(4));
  }
}

}  // namespace dryfly::motif
