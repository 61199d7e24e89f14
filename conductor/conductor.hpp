// Virtual time for real processes: the loop that looks at the ranks, lets the network run as far as nothing can reach
// it any more, and releases the ranks that may go on. When ranks look has no influence on any result.
//
// Who does what: Roster knows the processes that are the ranks; Inbox, which of them wants something; Gates, for what
// each waits; Clock, how far each may act and the network may run; Batons, who has the baton of a node; Translator
// makes commands for the NICs of theirs, and events of what the NICs say, which Delivery puts into their rings.
// Watchdog notices that nothing moves, on a served fabric Holders and Pace take its place; Recording and Report write
// what is left of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conductor/batons.hpp"
#include "conductor/clock.hpp"
#include "conductor/delivery.hpp"
#include "conductor/gates.hpp"
#include "conductor/headway.hpp"
#include "conductor/holders.hpp"
#include "conductor/inbox.hpp"
#include "conductor/job_traffic.hpp"
#include "conductor/pace.hpp"
#include "conductor/places.hpp"
#include "conductor/rank.hpp"
#include "conductor/recording.hpp"
#include "conductor/report.hpp"
#include "conductor/roster.hpp"
#include "conductor/segment.hpp"
#include "conductor/status.hpp"
#include "conductor/translator.hpp"
#include "conductor/watchdog.hpp"
#include "core/machine/machine.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/spec.hpp"

namespace dryfly {

class Conductor final : private TroubleOutlet {
 public:
  // With a folder for it, the run is recorded there.
  Conductor(const Spec& spec, const std::string& channel, const std::string& result_path, StatusLine status,
            StatusLine attach_line, int life_line, const std::string& record_folder = "");
  // Until the life line closes.
  void run();

 private:
  void unreachable(RankId rank, RankId other) override;
  void without_entry(RankId rank) override;
  void damaged(RankId rank, const char* reason) override { roster_.cut_off(ranks_[rank.value], reason); }

  // Throws SpecError when ranks cannot reach each other on the machine as it is.
  void require_routes(const Spec& spec) const;
  void open_fabric();
  void look(Rank& rank);
  void start_all();
  void end_all();
  std::uint64_t settle_bounds();
  bool advance();
  bool has_visit() const { return roster_.has_visits() || roster_.is_over(); }
  long longest_nap_ns() const;
  void wait_for_work();
  GateTotals gate_totals() const;
  bool is_served() const { return segment_.header().served != 0; }

  Machine machine_;
  Segment segment_;
  std::vector<Rank> ranks_;
  StatusLine status_;
  Inbox inbox_;
  Clock clock_;
  Batons batons_;
  Delivery delivery_;
  Places places_;
  Translator translator_;
  Nics nics_;
  JobTraffic job_;
  Gates gates_;
  Watchdog watchdog_;
  Headway headway_;
  Holders holders_;
  Pace pace_;
  Report report_;
  Recording recording_;
  Roster roster_;
};

}  // namespace dryfly
