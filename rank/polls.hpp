// The rank's policy of time: what a poll that finds nothing does. The library polls as often as it likes, and how often
// that is depends on the computer; so the rank's clock moves by rules that do not count polls of wall time. A blocking
// call waits for the next event, a test comes back at its own instant, and before each event the library gets a few
// free polls. Who reads a clock between polls of its own may be about to end its loop by that clock, so that it waits
// in steps, as a test does. A process of a served fabric (dryfly serve) waits in steps, because others may come at any
// time.
#pragma once

#include <cstdint>

#include "rank/attachment.hpp"
#include "rank/baton.hpp"
#include "rank/event_ring.hpp"
#include "rank/gate.hpp"
#include "rank/self.hpp"
#include "rank/streams.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class Polls {
 public:
  Polls(const Attachment& attachment, Self* self, EventRing& events, Gate& gate, Baton& baton, Streams& streams)
      : header_(attachment.header),
        page_(attachment.page),
        socket_(attachment.socket),
        self_(self),
        events_(events),
        gate_(gate),
        baton_(baton),
        streams_(streams) {}

  // In a blocking MPI call each event, and each wait, is preceded by a few polls that find nothing and cost nothing:
  // the library does work of its own in between (schedules of nonblocking collectives, messages to itself), and that
  // must not depend on whether the simulator happens to be ahead. As long as it copies in between, it is at such work:
  // MPICH moves a large accumulate to itself through cells, one a poll. True: this poll is one of them. While such work
  // takes virtual time, what the network brings meanwhile is looked for now and then.
  bool take_free_poll();
  // The library has taken an event, or has acted: it gets its free polls again.
  void begin_free_polls() { free_ = copying_ = 0; }
  // The library has taken a completion, by which others of the rank's threads may have what they wait for.
  void took() {
    begin_free_polls();
    if (self_->has_threads() && self_->threads.took != nullptr) self_->threads.took();
  }
  // A poll has found nothing in the ring. Comes back when it is certain that nothing is visible at this instant, which
  // costs one empty poll, or, where the call may wait (see CallMode), with the clock moved to the next event. True if
  // an event is now visible.
  bool idle();
  // As idle(), but waits until an event or until the clock has reached `deadline_ps` whatever the call mode. On a
  // served fabric it may come back sooner, with neither.
  bool idle_until(std::uint64_t deadline_ps);
  // Comes back when every event visible at this instant is in the ring.
  void settle();
  // The call must come back with "nothing" rather than wait (MPI_Test and its like).
  bool must_not_wait() const { return only_looks_ || self_->mode() == CallMode::testing; }
  // The process is about to sleep until its socket can be read. False: something has come, look first.
  bool may_sleep();

  Streams& streams() { return streams_; }
  // An event is about to be looked at. To a rank that tests in a loop it comes no sooner than to one that waits.
  void meet(const wire::Event& event) {
    if (empty_ == 0 || self_->mode() != CallMode::testing || event.at_ps <= looked_ps_) return;
    const std::uint64_t seen_ps = event.at_ps + self_->duration_ps(header_->costs.wake_ps);
    if (seen_ps > self_->now()) pass_until(seen_ps);
  }
  // An event has been taken.
  void found() { empty_ = 0; }
  // A command has been given.
  void acted() {
    empty_ = 0;
    begin_free_polls();
  }
  // Any of the rank's threads may call.
  bool has_threads() const { return self_->has_threads(); }
  // Several threads have met in the provider.
  void crowd() { crowded_ = true; }
  // Waits for the oldest event, if there is one.
  bool jump_to_event();

 private:
  bool poll_exactly();
  bool wait_until(wire::GateKind kind, std::uint64_t deadline_ps);
  bool wait_with_node(wire::GateKind kind, std::uint64_t deadline_ps);
  bool wait_outside();
  bool wait_beside_threads(CallMode mode);
  std::uint64_t longest_test_ps(std::uint64_t reach) const;
  void move_clock_to(std::uint64_t at_ps);
  void stop_beside_streams(wire::GateKind kind, std::uint64_t deadline_ps);
  void charge_wake() {
    empty_ = 0;
    charge(header_->costs.wake_ps);
  }
  void charge_poll() { charge(header_->costs.poll_ps); }
  void charge(std::uint64_t ps) { pass_until(self_->now() + self_->duration_ps(ps)); }
  void pass_until(std::uint64_t at_ps) {
    self_->pass_to(at_ps);
    self_->set_clock(at_ps);
  }
  std::uint64_t served_step_ps() const;
  void note_clock();

  const wire::SegmentHeader* header_;
  wire::RankPage* page_;
  int socket_;
  Self* self_;
  EventRing& events_;
  Gate& gate_;
  Baton& baton_;
  Streams& streams_;
  std::uint32_t turns_seen_ = 0;  // of threads, when one of several last waited
  std::uint64_t tested_ps_ = 0;   // for how long tests have waited since, one after the other
  std::uint32_t free_ = 0;        // free polls taken since the last event, command or copy
  std::uint32_t copies_seen_ = 0;
  std::uint64_t looked_ps_ = 0;  // when a poll last was none of the free ones, or a test has found nothing
  bool only_looks_ = false;      // this poll, in the middle of such work
  std::uint32_t copying_ = 0;    // times that it got its free polls again for a copy, since the last event or command
  std::uint32_t empty_ = 0;      // polls in a row, without an event or a command between
  std::uint64_t readings_seen_ = 0;  // of a clock, when a poll last found nothing
  std::uint32_t timed_ = 0;          // such polls in a row, with a reading before each
  std::uint32_t held_back_ = 0;      // polls, because another thread was to go on
  bool crowded_ = false;
};

}  // namespace dryfly::rank
