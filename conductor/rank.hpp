// What the conductor knows of one rank, and the writing end of its event ring.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "conductor/copy_orders.hpp"
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
  std::string inline_payload;  // a string, for it has up to 15 bytes in itself
  std::uint32_t tenancy = 0;   // for whom: the process that is the rank, or one that was it before
  // Not to be shown before `copier` has executed its copy order number `copy_number` (0: no condition).
  RankId copier;
  std::uint64_t copy_number = 0;
  std::uint64_t copy_order = 0;  // the number of the copy that it orders its receiver to make; 0: none
};

// The process that is the rank; written by Roster.
struct Process {
  std::uint32_t pid = 0;
  int line = -1;              // a socket, to the process
  std::uint32_t tenancy = 0;  // served: counts the processes that have been this rank
  bool cut_off = false;       // has damaged its ring: nothing is read of it any more
  std::string libmpi;
  std::string libfabric;
  std::string program;
};

// What the rank has asked for last, and where it stands in virtual time by that; written by Gates.
struct GateRequest {
  std::uint32_t ticket = 0;  // of the last one seen
  std::uint64_t at_ps = 0;
  std::uint64_t deadline_ps = 0;
  std::uint64_t end_ps = 0;     // when it entered MPI_Finalize
  std::uint64_t rejoin_ps = 0;  // coming back from outside virtual time: the clock to go on with
  bool in_finalize = false;
  bool outside = false;     // inside a marked call: does not hold virtual time
  bool heeds_news = false;  // what a NIC has told of memory lets it go on, too
  bool only_news = false;   // and no event does
};

// Where ranks of a node talk through memory; written by Batons.
struct BatonLooks {
  std::uint32_t ends = 0;            // times it has given its node's baton back, as seen
  std::uint32_t chain = 0;           // looks in a row, up to this one, of which none is known to have written
  std::uint64_t look_ps = never.ps;  // when it has to look at memory again
  std::uint32_t look_chain = 0;      // the chain then
};

// The reading end of its command ring; written by CommandReader.
struct CommandRing {
  char* ring = nullptr;
  std::uint64_t tail = 0;
};

// The writing end of its event ring; written by Delivery, but for the copies, which Payloads orders.
struct EventRing {
  char* ring = nullptr;
  std::uint64_t head = 0;
  std::uint64_t last_ps = 0;          // the instant of the last event given to it
  std::deque<PendingEvent> overflow;  // events that do not fit into the ring or wait for a copy
  CopyOrders copies;
  std::vector<RankId> copy_waiters;  // ranks whose oldest pending event waits for a copy by this rank
};

// Where it is bound, and what it has of its node by that.
struct Seat {
  wire::NodePlace place{};
  std::uint32_t core = 0;             // of those that it may use, where `place` binds it
  std::uint32_t ranks_in_region = 0;  // of the node, by the L3 region of their cores; 0: nobody is bound
  std::uint64_t nics = 0;             // that it has opened an end-point on, by their numbers on the node
  wire::NodeShare share{};
  // Shares that it will have, from an instant on: it learns of one where it stops next.
  std::vector<std::pair<std::uint64_t, wire::NodeShare>> coming;
};

struct Rank {
  RankId id;
  wire::RankPage* page = nullptr;
  NodeId node;
  std::uint32_t nic_index = 0;          // of its first end-point
  std::uint32_t socket = 0;             // of its node, where it runs if it is not bound
  std::uint32_t region = 0;             // and of which L3 region
  Seat seat;                            // written by Places
  RankState state = RankState::absent;  // written by Clock
  std::uint64_t until_ps = 0;           // written by Clock: for what it waits, polling or timed
  Process process;
  GateRequest gate;
  BatonLooks baton;
  CommandRing commands;
  EventRing events;
  std::deque<wire::News> news;  // for which its page has no room yet; written by Delivery
};

// Events are in its ring that it has not taken.
inline bool has_untaken(const Rank& rank) {
  return rank.events.head != rank.page->event_tail.load(std::memory_order_acquire);
}
// News are in its page that it has not taken.
inline bool has_news(const Rank& rank) {
  return rank.page->news.head.load(std::memory_order_relaxed) != rank.page->news.tail.load(std::memory_order_acquire);
}
// What the rank waits for at its gate is there.
inline bool has_awaited(const Rank& rank) {
  return (!rank.gate.only_news && has_untaken(rank)) || (rank.gate.heeds_news && has_news(rank));
}
// When the oldest event is visible that the rank has not taken, in its ring or held back.
std::uint64_t next_event_ps(const Segment& segment, const Rank& rank);

// Wakes the rank, if it waits at its gate, without releasing it.
void nudge(wire::RankPage& page);

// Puts an event into the ring; false when there is no room.
bool write_event(const Segment& segment, Rank& rank, const PendingEvent& pending);

}  // namespace dryfly
