// Between the wire and the NICs: commands of the ranks become commands of core/nic at the instant at which they reach
// the NIC, and what the NICs report becomes events for the ranks. Puts together the parts that do this; knows nothing
// of who may run.
//
//   ring -> CommandReader -> CommandQueue -> CommandIssuer -> Nics -> RankHost -> EventWriter -> whoever writes the
//   ring
//
// Beside these: OpenCommands, which all of them name by slot; Endpoints, MemoryRegions, Payloads, Claims, Triggers,
// StreamNews, Reductions and ProcessorWork, each with what it is called after; and Tally and Peeks, which count.
#pragma once

#include <cstdint>
#include <vector>

#include "conductor/claims.hpp"
#include "conductor/command_issuer.hpp"
#include "conductor/command_queue.hpp"
#include "conductor/command_reader.hpp"
#include "conductor/distances.hpp"
#include "conductor/endpoints.hpp"
#include "conductor/event_writer.hpp"
#include "conductor/memory_regions.hpp"
#include "conductor/open_command.hpp"
#include "conductor/payloads.hpp"
#include "conductor/peeks.hpp"
#include "conductor/processor_work.hpp"
#include "conductor/rank.hpp"
#include "conductor/rank_host.hpp"
#include "conductor/reductions.hpp"
#include "conductor/segment.hpp"
#include "conductor/stream_news.hpp"
#include "conductor/tally.hpp"
#include "conductor/triggers.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/nic.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

class Translator final {
 public:
  // `nics` may be constructed later, with host(); nothing is asked of them before.
  Translator(Engine& engine, Nics& nics, const Dragonfly& topology, Segment& segment, std::vector<Rank>& ranks,
             EventOutlet& outlet, TroubleOutlet& trouble, Distances& distances, Places& places);

  Host& host() { return host_; }

  // Takes every command out of the rank's ring.
  void drain(Rank& rank) { reader_.drain(rank); }
  // The process that was this rank has ended: what it had issued takes its course, then its end-points close. Its place
  // can be taken again when it has no commands left.
  void abandon(Rank& rank) { reader_.abandon(rank); }
  // Another process is this rank from now on.
  void prepare_seat(const Rank& rank) {
    triggers_.begin(rank.id, rank.process.tenancy);
    news_.begin(rank.id);
  }
  // The run begins at that instant, with all end-points open.
  void settle_places(std::uint64_t start_ps) { endpoints_.settle_all(start_ps); }
  bool has_commands(RankId rank) const { return !queue_.is_empty(rank); }

  Tally& tally() { return tally_; }
  const Peeks& peeks() const { return peeks_; }
  const Triggers& triggers() const { return triggers_; }
  bool holds_only_peeks() const {
    return queue_.holds_only_peeks() && events_.events_pending() + triggers_.events_pending() == 0;
  }
  // Engine events for commands that there have been, and those that are still to come.
  std::uint64_t events_scheduled() const {
    return queue_.events_scheduled() + events_.events_scheduled() + triggers_.events_scheduled();
  }
  std::uint64_t events_pending() const {
    return queue_.events_pending() + events_.events_pending() + triggers_.events_pending();
  }

 private:
  OpenCommands commands_;
  Tally tally_;
  Peeks peeks_;
  EventWriter events_;
  CommandQueue queue_;
  Triggers triggers_;
  Claims claims_;
  Payloads payloads_;
  StreamNews news_;
  MemoryRegions regions_;
  ProcessorWork work_;
  Reductions reductions_;
  Endpoints endpoints_;
  RankHost host_;
  CommandIssuer issuer_;
  CommandReader reader_;
};

}  // namespace dryfly
