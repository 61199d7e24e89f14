// All algorithms by name. Those of one collective differ in what they send, and each name stands for the same messages
// whoever chooses it: where MPICH's and Open MPI's algorithms of one name differ, both are here.
#include <algorithm>
#include <array>
#include <bit>

#include "core/motif/collective/collective.hpp"
#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/compound.hpp"
#include "core/motif/collective/gpu_collective.hpp"
#include "core/motif/collective/hierarchical.hpp"
#include "core/motif/collective/selection.hpp"
#include "core/spec/spec.hpp"

namespace dryfly::motif {
namespace {

constexpr std::array<std::string_view, collective_count> names{
    "barrier",  "bcast",  "reduce", "allreduce", "allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block",
    "alltoall", "gather", "scatter"};

using Run = Task (*)(Rank&, Communicator, const CollectiveCall&, const Choice&, const Selection&);

template <Task (*any_size)(Rank&, Communicator)>
Task plain(Rank& me, Communicator ranks, const CollectiveCall&, const Choice&, const Selection&) {
  return any_size(me, ranks);
}

template <Shape shape>
Task down(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice& how, const Selection&) {
  return tree_bcast(me, ranks, call.size, call.root, Tree(shape, ranks.size(), how.fan), how.segment);
}

template <Shape shape>
Task up(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice& how, const Selection&) {
  return tree_reduce(me, ranks, call.size, call.root, Tree(shape, ranks.size(), how.fan), how.segment);
}

template <Task (*with_root)(Rank&, Communicator, Bytes, Bytes, std::uint32_t)>
Task parted(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return with_root(me, ranks, call.size, call.element, call.root);
}

template <Task (*blocks)(Rank&, Communicator, Blocks)>
Task equal(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return blocks(me, ranks, Blocks::equal(call.size));
}

template <Task (*several)(Rank&, Communicator, CollectiveCall, const Selection&)>
Task of_others(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection& selection) {
  return several(me, ranks, call, selection);
}

template <Task (*tree)(Rank&, Communicator, Bytes, std::uint32_t)>
Task rooted(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return tree(me, ranks, call.size, call.root);
}

template <Halves halves>
Task by_halves(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return call.what == Collective::reduce ? rabenseifner_reduce(me, ranks, call.size, call.element, call.root, halves)
                                         : rabenseifner_allreduce(me, ranks, call.size, call.element, halves);
}

template <bool at_once>
Task scatter_linearly(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return linear_scatter(me, ranks, Blocks::equal(call.size), call.root, at_once);
}

Task disseminate(Rank& me, Communicator ranks, const CollectiveCall&, const Choice& how, const Selection&) {
  return dissemination_barrier(me, ranks, how.fan);
}
Task double_vectors(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return recursive_doubling_allreduce(me, ranks, call.size);
}
Task reduce_around(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice& how, const Selection&) {
  return ring_allreduce(me, ranks, call.size, call.element, how.segment);
}
Task around(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice& how, const Selection&) {
  return ring_allgather(me, ranks, Blocks::equal(call.size), how.segment);
}
Task butterfly(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  const bool mirrored = call.what == Collective::reduce_scatter_block && std::has_single_bit(ranks.size());
  return butterfly_reduce_scatter(me, ranks, Blocks::equal(call.size), mirrored);
}
Task all_pairs(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return pairwise_alltoall(me, ranks, call.size, 1, ranks.size() - 1);
}
Task all_exclusive(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return exclusive_alltoall(me, ranks, call.size);
}
Task all_bruck(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection&) {
  return bruck_alltoall(me, ranks, call.size);
}
Task all_scattered(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice& how, const Selection&) {
  return scattered_alltoall(me, ranks, call.size, how.window);
}
Task gather_asked(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice& how, const Selection&) {
  return asked_gather(me, ranks, call.size, call.root, how.segment);
}

template <GpuAlgorithm algorithm>
Task on_gpus(Rank& me, Communicator ranks, const CollectiveCall& call, const Choice&, const Selection& selection) {
  if (algorithm == GpuAlgorithm::tuned && ranks.rank(0) == me.id() && ranks.size() > 1) {
    const bool by_tree = tree_is_tuned(GpuPlaces(me.job(), ranks), me.job().costs().gpus.nic, call.size);
    selection.decide(me, ranks, call, by_tree ? "gpu_tree" : "gpu_ring", "gpu_tuned finds it faster");
  }
  return run_on_gpus(me, ranks, call, algorithm);
}

constexpr Run doubled = equal<recursive_doubling_allgather>;
constexpr Run rotated = equal<bruck_allgather>;
constexpr Run neighbours = equal<neighbour_allgather>;

using enum Collective;
constexpr Algorithm all[] = {
    {barrier, "dissemination", disseminate, 2, false, 2},
    {barrier, "recursive_doubling", plain<recursive_doubling_barrier>},
    {barrier, "linear", plain<linear_barrier>},
    {barrier, "tree", plain<tree_barrier>},
    {barrier, "double_ring", plain<double_ring_barrier>},
    {barrier, "hierarchical", of_others<hierarchical_collective>, 2, true},
    {barrier, "switches", plain<in_switches>},
    {bcast, "linear", down<Shape::linear>},
    {bcast, "chain", down<Shape::chain>, 1},
    {bcast, "binary", down<Shape::bushy>},
    {bcast, "binomial", down<Shape::binomial>},
    {bcast, "distance_binomial", down<Shape::distance_binomial>},
    {bcast, "knomial", down<Shape::knomial>, 4, false, 2},
    {bcast, "split_binary", parted<split_binary_bcast>},
    {bcast, "scatter_recursive_doubling", parted<scatter_doubling_bcast>},
    {bcast, "scatter_ring", parted<scatter_ring_bcast>},
    {bcast, "hierarchical", of_others<hierarchical_collective>, 2, true},
    {bcast, "switches", plain<in_switches>, 2, false, 1, switch_bytes_max},
    {reduce, "linear", up<Shape::linear>},
    {reduce, "chain", up<Shape::chain>, 4},
    {reduce, "pipeline", up<Shape::chain>, 1},
    {reduce, "binary", up<Shape::bushy>},
    {reduce, "in_order_binary", up<Shape::in_order_binary>},
    {reduce, "binomial", up<Shape::binomial>},
    {reduce, "rabenseifner", by_halves<Halves::of_blocks>},
    {reduce, "rabenseifner_halves", by_halves<Halves::of_elements>},
    {reduce, "hierarchical", of_others<hierarchical_collective>, 2, true},
    {reduce, "switches", plain<in_switches>, 2, false, 1, switch_bytes_max},
    {allreduce, "recursive_doubling", double_vectors},
    {allreduce, "rabenseifner", by_halves<Halves::of_blocks>},
    {allreduce, "rabenseifner_halves", by_halves<Halves::of_elements>},
    {allreduce, "ring", reduce_around},
    {allreduce, "reduce_bcast", of_others<reduce_then_bcast>},
    {allreduce, "hierarchical", of_others<hierarchical_collective>, 2, true},
    {allreduce, "multi_nic", of_others<multi_nic_allreduce>, 2, true},
    {allreduce, "gpu_ring", on_gpus<GpuAlgorithm::ring>},
    {allreduce, "gpu_tree", on_gpus<GpuAlgorithm::tree>},
    {allreduce, "gpu_topo", on_gpus<GpuAlgorithm::topo>},
    {allreduce, "gpu_tuned", on_gpus<GpuAlgorithm::tuned>},
    {allreduce, "switches", plain<in_switches>, 2, false, 1, switch_bytes_max},
    {allgather, "ring", around},
    {allgather, "recursive_doubling", doubled},
    {allgather, "bruck", rotated},
    {allgather, "neighbour", neighbours},
    {allgather, "gather_bcast", of_others<gather_then_bcast>},
    {allgather, "gpu_ring", on_gpus<GpuAlgorithm::ring>},
    {allgatherv, "ring", around},
    {allgatherv, "recursive_doubling", doubled},
    {allgatherv, "bruck", rotated},
    {allgatherv, "neighbour", neighbours},
    {allgatherv, "gather_bcast", of_others<gather_then_bcast>},
    {reduce_scatter, "recursive_halving", equal<halving_reduce_scatter>},
    {reduce_scatter, "pairwise", equal<pairwise_reduce_scatter>},
    {reduce_scatter, "ring", equal<ring_reduce_scatter>},
    {reduce_scatter, "butterfly", butterfly},
    {reduce_scatter, "recursive_doubling", equal<doubling_reduce_scatter>},
    {reduce_scatter, "reduce_then_scatter", of_others<reduce_then_scatter>},
    {reduce_scatter_block, "gpu_ring", on_gpus<GpuAlgorithm::ring>},
    {reduce_scatter_block, "recursive_halving", equal<halving_reduce_scatter>},
    {reduce_scatter_block, "pairwise", equal<pairwise_reduce_scatter>},
    {reduce_scatter_block, "ring", equal<ring_reduce_scatter>},
    {reduce_scatter_block, "butterfly", butterfly},
    {reduce_scatter_block, "recursive_doubling", equal<doubling_reduce_scatter>},
    {reduce_scatter_block, "reduce_then_scatter", of_others<reduce_then_scatter>},
    {alltoall, "pairwise", all_pairs},
    {alltoall, "exclusive", all_exclusive},
    {alltoall, "bruck", all_bruck},
    {alltoall, "scattered", all_scattered},
    {gather, "binomial", rooted<binomial_gather>},
    {gather, "linear", rooted<linear_gather>},
    {gather, "asked", gather_asked},
    {scatter, "binomial", rooted<binomial_scatter>},
    {scatter, "linear", scatter_linearly<false>},
    {scatter, "linear_at_once", scatter_linearly<true>},
};

}  // namespace

std::span<const Algorithm> algorithms() { return all; }

std::string_view name_of(Collective collective) { return names[static_cast<std::size_t>(collective)]; }

Collective collective_named(std::string_view name) {
  std::string accepted;
  for (std::size_t number = 0; number < names.size(); ++number) {
    if (names[number] == name) return static_cast<Collective>(number);
    accepted += (number ? ", " : "") + std::string(names[number]);
  }
  throw SpecError("collective `" + std::string(name) + "`: accepted is " + accepted);
}

const Algorithm& algorithm_named(Collective collective, std::string_view name) {
  std::string accepted;
  for (const Algorithm& algorithm : all) {
    if (algorithm.what != collective) continue;
    if (algorithm.name == name) return algorithm;
    accepted += (accepted.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  throw SpecError("algorithm `" + std::string(name) + "` of " + std::string(name_of(collective)) + ": accepted is " +
                  accepted);
}

void complete(Choice& choice) {
  if (choice.fan == 0) choice.fan = choice.algorithm->usual_fan;
  if (choice.fan >= choice.algorithm->least_fan) return;
  throw SpecError("fan = " + std::to_string(choice.fan) + " of algorithm " + std::string(choice.algorithm->name) +
                  ": accepted is " + std::to_string(choice.algorithm->least_fan) + " and more");
}

Task run_collective(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection) {
  const Choice how = selection.choose(me, ranks, call);
  return how.algorithm->run(me, ranks, call, how, selection);
}

}  // namespace dryfly::motif
