#include "core/motif/collective/hierarchical.hpp"

#include <algorithm>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/selection.hpp"
#include "core/motif/job/job.hpp"

namespace dryfly::motif {
namespace {

// Where a rank is among those of its node, and the communicators that it is in.
struct Levels {
  std::uint32_t per_node;
  std::uint32_t node;
  std::uint32_t local;

  Levels(Rank& me, const Communicator& ranks)
      : per_node(ranks.on_a_node(me.job().placement().per_node())),
        node(ranks.place_of(me) / per_node),
        local(ranks.place_of(me) % per_node) {}
  Communicator of_node(const Communicator& ranks) const {
    return ranks.part(node * per_node, 1, per_node, Communicator::Level::nodes);
  }
  Communicator of_likes(const Communicator& ranks, std::uint32_t likes) const {
    return ranks.part(likes, per_node, ranks.size() / per_node, Communicator::Level::leaders);
  }
};

}  // namespace

Task hierarchical_collective(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection) {
  const Levels levels(me, ranks);
  // The root's node is led by the root.
  const std::uint32_t leader = call.root % levels.per_node;
  const Communicator node = levels.of_node(ranks);
  const Tree tree(Shape::binomial, levels.per_node, 2);
  const bool up = call.what != Collective::bcast;
  const bool down = call.what != Collective::reduce;
  if (up) co_await tree_reduce(me, node, call.size, leader, tree, Bytes{});
  if (levels.local == leader) {
    CollectiveCall between = call;
    between.root = call.root / levels.per_node;
    const Communicator leaders = levels.of_likes(ranks, leader);
    co_await run_collective(me, leaders, between, selection);
  }
  if (down) co_await tree_bcast(me, node, call.size, leader, tree, Bytes{});
}

Task multi_nic_allreduce(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection) {
  const Levels levels(me, ranks);
  const Job& job = me.job();
  const std::uint32_t nics = std::min(job.placement().nics_of_node_of(me.id()), levels.per_node);
  const Blocks parts = Blocks::split(call.size, nics, call.element);
  const Communicator node = levels.of_node(ranks);
  // Local rank l * per_node / nics is the first one at NIC l.
  const auto first_at = [&](std::uint32_t nic) { return (nic * levels.per_node + nics - 1) / nics; };
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    if (levels.local == first_at(nic)) continue;
    me.isend(node.rank(first_at(nic)), node.tag(nic), parts.of(nic));
  }
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    if (levels.local != first_at(nic)) continue;
    for (std::uint32_t other = 1; other < levels.per_node; ++other) {
      co_await me.recv(node.rank((levels.local + other) % levels.per_node), node.tag(nic));
      co_await combine(me, parts.of(nic));
    }
    CollectiveCall between = call;
    between.size = parts.of(nic);
    const Communicator likes = levels.of_likes(ranks, levels.local);
    co_await run_collective(me, likes, between, selection);
    for (std::uint32_t other = 1; other < levels.per_node; ++other) {
      me.isend(node.rank((levels.local + other) % levels.per_node), node.tag(nics + nic), parts.of(nic));
    }
  }
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    if (levels.local != first_at(nic)) me.irecv(node.rank(first_at(nic)), node.tag(nics + nic));
  }
  co_await me.wait_all();
}

}  // namespace dryfly::motif
