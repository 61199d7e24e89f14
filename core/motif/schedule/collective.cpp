#include "core/motif/schedule/collective.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/job/job.hpp"

namespace dryfly::motif {
namespace {

// A place in a binomial tree whose root is 0: it has the ranks of `places` places from its own on, and gives those of
// the upper half to its eldest child, half of the rest to the next, and so on.
struct Branch {
  std::uint32_t place;   // counted from the root
  std::uint32_t parent;  // likewise; the root's is itself
  std::uint32_t reach;   // a power of two
};

Branch branch_of(std::uint32_t place, std::uint32_t size) {
  if (place == 0) return {0, 0, std::bit_ceil(size)};
  const std::uint32_t reach = place & (~place + 1);
  return {place, place - reach, reach};
}

std::uint32_t from_root(const Rank& me, const Communicator& ranks, std::uint32_t root) {
  return (ranks.place_of(me) + ranks.size() - root) % ranks.size();
}

std::uint32_t rank_at(const Communicator& ranks, std::uint32_t root, std::uint32_t place) {
  return ranks.rank((place + root) % ranks.size());
}

// What a branch of the tree holds: everything, or a part for each of its ranks.
Bytes share(Bytes size, bool in_parts, std::uint32_t place, std::uint32_t reach, std::uint32_t ranks) {
  return in_parts ? Bytes{size.count * std::min(reach, ranks - place)} : size;
}

// bcast, and scatter in parts.
Task down_the_tree(Rank& me, Communicator ranks, std::uint32_t root, Bytes size, bool in_parts) {
  const Branch here = branch_of(from_root(me, ranks, root), ranks.size());
  if (here.place != here.parent) co_await me.recv(rank_at(ranks, root, here.parent), ranks.tag(0));
  for (std::uint32_t reach = here.reach / 2; reach > 0; reach /= 2) {
    const std::uint32_t child = here.place + reach;
    if (child >= ranks.size()) continue;
    co_await me.send(rank_at(ranks, root, child), ranks.tag(0), share(size, in_parts, child, reach, ranks.size()));
  }
}

// reduce, and gather in parts.
Task up_the_tree(Rank& me, Communicator ranks, std::uint32_t root, Bytes size, bool in_parts) {
  const Branch here = branch_of(from_root(me, ranks, root), ranks.size());
  const Duration reduction = in_parts ? Duration{} : transmission_time(size, me.job().costs().copy_rate);
  for (std::uint32_t reach = 1; reach < here.reach; reach *= 2) {
    const std::uint32_t child = here.place + reach;
    if (child >= ranks.size()) break;
    co_await me.recv(rank_at(ranks, root, child), ranks.tag(0));
    co_await me.compute(reduction);
  }
  if (here.place == here.parent) co_return;
  co_await me.send(rank_at(ranks, root, here.parent), ranks.tag(0),
                   share(size, in_parts, here.place, here.reach, ranks.size()));
}

Task round_the_ring(Rank& me, Communicator ranks, Bytes size) {
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t to = ranks.rank((place + 1) % ranks.size());
  const std::uint32_t from = ranks.rank((place + ranks.size() - 1) % ranks.size());
  for (std::uint32_t step = 1; step < ranks.size(); ++step) co_await me.sendrecv(to, from, ranks.tag(0), size);
}

Task pairwise_reduction(Rank& me, Communicator ranks, Bytes size) {
  const Duration reduction = transmission_time(size, me.job().costs().copy_rate);
  for (std::uint32_t step = 1; step < ranks.size(); ++step) {
    co_await pairwise_alltoall(me, ranks, size, step, step);
    co_await me.compute(reduction);
  }
}

Task fence(Rank& me, Communicator ranks) {
  co_await me.wait_all();
  co_await dissemination_barrier(me, ranks);
}

// A schedule does not say of which type the data are, so reductions are of 8 bytes each, or of
// the largest power of two that divides their size.
CollectiveCall call_of(Verb verb, std::uint32_t root, Bytes size) {
  constexpr std::array<std::pair<Verb, Collective>, 9> names{{
      {Verb::barrier, Collective::barrier},
      {Verb::bcast, Collective::bcast},
      {Verb::reduce, Collective::reduce},
      {Verb::allreduce, Collective::allreduce},
      {Verb::alltoall, Collective::alltoall},
      {Verb::allgather, Collective::allgather},
      {Verb::reduce_scatter, Collective::reduce_scatter_block},
      {Verb::gather, Collective::gather},
      {Verb::scatter, Collective::scatter},
  }};
  const auto* const found =
      std::find_if(names.begin(), names.end(), [&](const auto& one) { return one.first == verb; });
  DRYFLY_CHECK(found != names.end());
  const bool reduces = verb == Verb::reduce || verb == Verb::allreduce || verb == Verb::reduce_scatter;
  std::uint64_t element = reduces ? 8 : 1;
  while (size.count % element != 0) element /= 2;
  return {.what = found->second, .size = size, .element = Bytes{element}, .root = root};
}

}  // namespace

Task run_collective(Rank& me, Verb verb, Communicator ranks, std::uint32_t root, Bytes size, const Selection* library) {
  if (library != nullptr && verb != Verb::fence) {
    return run_collective(me, std::move(ranks), call_of(verb, root, size), *library);
  }
  switch (verb) {
    case Verb::barrier:
      return dissemination_barrier(me, ranks);
    case Verb::fence:
      return fence(me, ranks);
    case Verb::bcast:
      return down_the_tree(me, ranks, root, size, false);
    case Verb::scatter:
      return down_the_tree(me, ranks, root, size, true);
    case Verb::reduce:
      return up_the_tree(me, ranks, root, size, false);
    case Verb::gather:
      return up_the_tree(me, ranks, root, size, true);
    case Verb::allreduce:
      return recursive_doubling_allreduce(me, ranks, size);
    case Verb::alltoall:
      return pairwise_alltoall(me, ranks, size, 1, ranks.size() - 1);
    case Verb::allgather:
      return round_the_ring(me, ranks, size);
    case Verb::reduce_scatter:
      return pairwise_reduction(me, ranks, size);
    default:
      DRYFLY_UNREACHABLE("no collective");
  }
}

}  // namespace dryfly::motif
