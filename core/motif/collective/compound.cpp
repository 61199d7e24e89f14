#include "core/motif/collective/compound.hpp"

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/selection.hpp"

namespace dryfly::motif {
namespace {

CollectiveCall first_root(CollectiveCall call, Collective what, std::uint64_t bytes) {
  call.what = what;
  call.size = Bytes{bytes};
  call.root = 0;
  return call;
}

}  // namespace

Task reduce_then_bcast(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection) {
  co_await run_collective(me, ranks, first_root(call, Collective::reduce, call.size.count), selection);
  co_await run_collective(me, ranks, first_root(call, Collective::bcast, call.size.count), selection);
}

// With counts of their own for each rank (reduce_scatter) the parts are sent one by one.
Task reduce_then_scatter(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection) {
  co_await run_collective(me, ranks, first_root(call, Collective::reduce, call.total(ranks.size())), selection);
  if (call.what == Collective::reduce_scatter) {
    co_await linear_scatter(me, ranks, Blocks::equal(call.size), 0, false);
  } else {
    co_await run_collective(me, ranks, first_root(call, Collective::scatter, call.size.count), selection);
  }
}

Task gather_then_bcast(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection) {
  if (call.what == Collective::allgatherv) {
    co_await linear_gather(me, ranks, call.size, 0);
  } else {
    co_await run_collective(me, ranks, first_root(call, Collective::gather, call.size.count), selection);
  }
  co_await run_collective(me, ranks, first_root(call, Collective::bcast, call.total(ranks.size())), selection);
}

}  // namespace dryfly::motif
