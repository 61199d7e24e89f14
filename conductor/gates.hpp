// Where ranks wait for the conductor: a rank asks at its gate, and is released when it may go on.
//
// Ranks that meet (PMIx) all go on at one instant, the last one's plus what a command to a NIC and the sight of its
// completion take. The time of the process manager's own network and daemons is not modelled.
//
// Of ranks that are about to end the job only the first in virtual time goes on, of equals the one with the lower
// number: all may come to it at once, and who is heard is not to depend on this computer.
#pragma once

#include <cstdint>
#include <vector>

#include "conductor/batons.hpp"
#include "conductor/clock.hpp"
#include "conductor/delivery.hpp"
#include "conductor/first_failure.hpp"
#include "conductor/meetings.hpp"
#include "conductor/rank.hpp"
#include "conductor/run_recorder.hpp"
#include "conductor/segment.hpp"

namespace dryfly {

class Gates {
 public:
  // What a rank's request has completed.
  enum class Milestone : std::uint8_t { none, all_at_start, all_at_end };

  Gates(const Segment& segment, std::vector<Rank>& ranks, Clock& clock, Batons& batons, Delivery& delivery);

  // The rank's request, if it has a new one.
  Milestone open(Rank& rank, std::uint32_t ticket);
  // Lets it go on, with this clock; what it has to be told is on its page before.
  void release(Rank& rank, std::uint64_t clock);
  // Those that may go on by now; true if any. Of those that have an event the earliest first, and only so many that the
  // computer's processors are busy: meanwhile the others get more events, and have to wait less often.
  bool release_ready();
  // Nothing moves: who runs may sleep, or wait for a rank that was not released.
  bool release_all_ready();
  // Virtual time begins, or is over: for everybody.
  void release_all_at_start(Instant start);
  void release_all_at_end();

  // Whom to tell how long a rank has waited for the network; nobody: null.
  void tell(RunRecorder* recorder) { recorder_ = recorder; }
  std::uint64_t polls() const { return polls_; }
  std::uint64_t waits() const { return waits_; }
  std::uint64_t outside() const { return outside_; }  // how often a rank of the run has stepped out of virtual time
  std::uint64_t wakes() const { return wakes_; }      // of ranks that slept

 private:
  void rejoin(Rank& rank);
  void poll(Rank& rank);
  void wait(Rank& rank);
  void wait_until(Rank& rank);
  void wait_for_news(Rank& rank);
  Milestone start(Rank& rank);
  Milestone end(Rank& rank);
  void meet(Rank& rank);
  void fail(Rank& rank);
  void go_on_after_meeting(Rank& rank, std::uint64_t instant);
  void take_share(Rank& rank, std::uint64_t clock, bool has_waited);
  void ask_for_baton(Rank& rank);
  void wait_in_state(Rank& rank, RankState state, std::uint64_t bound);
  void wait_for_baton(Rank& rank, RankState state);
  bool pass_batons();
  bool release_those_with_events(std::uint32_t at_once);
  bool release_those_at_their_instant();
  bool is_served() const { return segment_.header().served != 0; }

  const Segment& segment_;
  std::vector<Rank>& ranks_;
  Clock& clock_;
  Batons& batons_;
  Delivery& delivery_;
  Meetings meetings_;
  FirstFailure failure_;
  RunRecorder* recorder_ = nullptr;
  std::vector<RankId> ready_;   // of the clock, while they are released; kept for its memory
  std::uint32_t at_once_;       // ranks that are to run while others could
  std::uint32_t starting_ = 0;  // at the start gate
  std::uint32_t ending_ = 0;    // have reached MPI_Finalize
  std::uint64_t polls_ = 0;
  std::uint64_t waits_ = 0;
  std::uint64_t outside_ = 0;
  std::uint64_t wakes_ = 0;
};

}  // namespace dryfly
