#include "core/motif/collective/collectives.hpp"
#include "core/motif/job/reductions.hpp"

namespace dryfly::motif {

// Whoever is the collective's root: all give a part, and the result comes to all.
Task in_switches(Rank& me, Communicator ranks) {
  Reductions& reductions = me.reductions();
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t group =
      reductions.group({ranks.tag(0), ranks.rank(0), ranks.rank(ranks.size() - 1), ranks.size()},
                       [&](std::uint32_t other) { return ranks.rank(other); });
  co_await me.wait(reductions.contribute(me, group, place));
  if (place == reductions.root(group)) co_await me.wait(reductions.answer(me, group));
}

}  // namespace dryfly::motif
