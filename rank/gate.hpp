// Where rank and conductor meet: the rank shows its clock as it goes by, or stops until the conductor releases it. In
// between it serves the conductor, and copies what has arrived.
#pragma once

#include <cstdint>

#include "rank/attachment.hpp"
#include "rank/attention.hpp"
#include "rank/event_ring.hpp"
#include "rank/payloads.hpp"
#include "rank/self.hpp"
#include "rank/sidestep.hpp"
#include "wire/spinner.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class Gate {
 public:
  Gate(const Attachment& attachment, Attention attention, Self* self, EventRing& events, Payloads& payloads)
      : header_(attachment.header),
        page_(attachment.page),
        socket_(attachment.socket),
        attention_(attention),
        self_(self),
        events_(events),
        payloads_(payloads) {
    spinner_.share_with(header_->rank_count);
  }

  // Shows the clock, without stopping.
  void publish();
  // Stops until the conductor has done what `kind` says. `patience_ns`: the wall time after which the rank asks to be
  // let on as it is; 0: any.
  void stop(wire::GateKind kind, std::uint64_t deadline_ps, long patience_ns = 0);
  // As stop(). By how much the clock has moved is counted as waiting. Returns that.
  std::uint64_t wait(wire::GateKind kind, std::uint64_t deadline_ps);
  // What its GPU's streams have done up to there is with the conductor: nothing is asked for earlier.
  void acted_at(std::uint64_t at_ps) { acted_ps_ = at_ps > acted_ps_ ? at_ps : acted_ps_; }
  std::uint64_t instant() const { return acted_ps_ > self_->now() ? acted_ps_ : self_->now(); }
  // As stop(), and News end a wait.
  void stop_for_news(wire::GateKind kind, std::uint64_t deadline_ps) {
    page_->gate.heeds_news = 1;
    stop(kind, deadline_ps);
    page_->gate.heeds_news = 0;
  }
  // Stops until the rank is the first in virtual time to end the job. The others are ended here, but nobody stays for
  // ever: one that computes without end would hold the instant up.
  void stop_to_fail();
  // The rank's clock when it was released last.
  std::uint64_t released_at_ps() const { return released_at_ps_; }

 private:
  std::uint32_t ask(wire::GateKind kind, std::uint64_t deadline_ps);
  bool is_released(std::uint32_t ticket) const;
  void spin(std::uint32_t ticket);
  bool sleep(std::uint32_t ticket, long patience_ns);
  bool is_recalled();
  void leave_if_job_is_over() const;

  wire::SegmentHeader* header_;
  wire::RankPage* page_;
  int socket_;
  Attention attention_;
  Self* self_;
  EventRing& events_;
  Payloads& payloads_;
  wire::Spinner spinner_{0};
  Sidestep sidestep_;
  std::uint64_t released_at_ps_ = 0;
  std::uint64_t acted_ps_ = 0;
};

}  // namespace dryfly::rank
