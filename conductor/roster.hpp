// Which processes are the ranks: where each rank has its place, the greeting of a process that becomes one, and the end
// of one. On a served fabric processes join a node and leave at any time; the rules, and why they are so:
// docs/decision/0007-a-served-fabric.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conductor/batons.hpp"
#include "conductor/clock.hpp"
#include "conductor/delivery.hpp"
#include "conductor/door.hpp"
#include "conductor/holders.hpp"
#include "conductor/inbox.hpp"
#include "conductor/rank.hpp"
#include "conductor/segment.hpp"
#include "conductor/status.hpp"
#include "conductor/translator.hpp"
#include "conductor/watchdog.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

class Roster {
 public:
  struct Parts {
    const Dragonfly& topology;
    const Segment& segment;
    std::vector<Rank>& ranks;
    Clock& clock;
    Batons& batons;
    Delivery& delivery;
    Translator& translator;
    Watchdog& watchdog;
    Holders& holders;
    Inbox& inbox;
    const StatusLine& status;
  };

  // `attach_line`: who is told of each process that is a rank. The door opens here; see Door for the other two.
  Roster(const Parts& parts, const Spec& spec, StatusLine attach_line, const std::string& channel, int life_line);

  bool has_visits() const { return door_.has_visits(); }
  bool is_over() const { return door_.over(); }

  // Those that have come, and those that have ended.
  void serve_visits();
  // What the process has put into its ring is no command. It holds virtual time no longer. A job is ended by the
  // command that has started us; from a served fabric the process is let go, and ends itself.
  void cut_off(Rank& rank, const char* reason);

 private:
  void place(Rank& rank, std::uint32_t index);
  void admit(const Visit& visit);
  // Why it may not be one; empty if it may, and then `seat` is its rank.
  std::string refusal_of(const wire::Hello& hello, Rank*& seat);
  void seat(Rank& rank, const Visit& visit);
  wire::Welcome welcome_to(const Rank& rank, const std::string& node_name) const;
  Rank* seat_on(NodeId node);
  void prepare_seat(Rank& rank);
  void process_ended(std::uint32_t rank, std::uint32_t pid);
  void seat_ended(Rank& rank);
  bool is_served() const { return of_.segment.header().served != 0; }

  Parts of_;
  Spec spec_;
  StatusLine attach_line_;
  Door door_;
};

}  // namespace dryfly
