// What the conductor knows of one rank, and the writing end of its event ring.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "conductor/segment.hpp"
#include "core/unit/unit.hpp"
#include "wire/wire.hpp"

namespace dryfly {

enum class RankState : std::uint8_t {
  absent,    // no process yet
  starting,  // attached, inside MPI_Init: does not hold virtual time
  running,   // may act from its bound on
  queued,    // is at an MPI call and waits for its node's baton
  polling,   // waits until everything visible at its instant is there
  waiting,   // waits for an event
  timed,     // waits for an event or a deadline
  meeting,   // waits until all have come to the meeting that it is at
  ending,    // inside MPI_Finalize, waits for an event or for everybody to get there
  away,      // outside virtual time: a marked call, or let go because it slept while all others stood still
  ended,     // everybody is in MPI_Finalize: virtual time is over
  gone,      // its process has ended
};

struct PendingEvent {
  wire::Event event;
  std::vector<std::byte> inline_payload;
  std::uint32_t tenancy = 0;  // for whom: the process that is the rank, or one that was it before
  // Not to be shown before `copier` has executed its copy order number `copy_number` (0: no condition).
  RankId copier;
  std::uint64_t copy_number = 0;
};

struct Rank {
  RankId id;
  wire::RankPage* page = nullptr;
  char* command_ring = nullptr;
  char* event_ring = nullptr;
  RankState state = RankState::absent;
  std::uint32_t pid = 0;
  int line = -1;              // a socket, to the process
  std::uint32_t tenancy = 0;  // served: counts the processes that have been this rank
  NodeId node;
  std::uint32_t nic_index = 0;    // of its first end-point
  std::uint32_t socket = 0;       // of its node, where it runs
  std::uint32_t gate_ticket = 0;  // last gate request seen
  std::uint64_t gate_at_ps = 0;
  std::uint64_t deadline_ps = 0;
  std::uint64_t end_ps = 0;     // when it entered MPI_Finalize
  std::uint64_t rejoin_ps = 0;  // coming back from outside virtual time: the clock to go on with
  // Of `Batons`, where ranks of a node talk through memory.
  std::uint32_t baton_ends = 0;      // times it has given its node's baton back, as seen
  std::uint32_t chain = 0;           // looks in a row, up to this one, of which none is known to have written
  std::uint64_t look_ps = never.ps;  // when it has to look at memory again
  std::uint32_t look_chain = 0;      // the chain then
  bool in_finalize = false;
  bool outside = false;  // inside a marked call: does not hold virtual time
  bool cut_off = false;  // has damaged its ring: nothing is read of it any more
  std::uint64_t command_tail = 0;
  std::uint64_t event_head = 0;
  std::uint64_t last_event_ps = 0;
  std::deque<PendingEvent> overflow;  // events that do not fit into the ring or wait for a copy
  std::uint64_t copies_ordered = 0;
  std::vector<RankId> copy_waiters;  // ranks whose oldest pending event waits for a copy by this rank
  std::string libmpi;
  std::string libfabric;
  std::string program;
};

// Wakes the rank, if it waits at its gate, without releasing it.
void nudge(wire::RankPage& page);

// Puts an event into the ring; false when there is no room.
bool write_event(const Segment& segment, Rank& rank, const PendingEvent& pending);

}  // namespace dryfly
