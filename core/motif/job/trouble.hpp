// What faults do to the loads of a carriage that answers at once: links on fewer lanes or with replays take longer,
// what meets a link that is down is lost and sent again, and the routes avoid what the fabric manager has taken out.
//
// Links, their faults and what the routes know of them are those of the packet model (core/network/fabric), and so is
// the retry schedule (docs/model/reliability.md#retry-schedule). A load is looked at as a whole: it is lost if a moment
// of its time on a link is down time, and then all of it is sent again. Of ordered loads between two NICs what follows
// one that is lost is taken when that has got through. What is sent again comes after a second and more, and finds no
// queues.
//
// Leaves out: places in the window that what is lost takes up until its time-out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "core/motif/job/carriage.hpp"
#include "core/motif/job/placement.hpp"
#include "core/motif/job/wires.hpp"
#include "core/network/fabric/fault_plan.hpp"
#include "core/network/fabric/link_faults.hpp"
#include "core/network/fabric/manager.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::motif {

// Of a load on one link, beside what it takes on one in order.
struct Lag {
  std::uint64_t longer_ps = 0;  // it occupies the link
  std::uint64_t later_ps = 0;   // its head goes on, so that the rest can follow without a gap
};

// Of a load where nothing is planted.
struct NoToll {
  static constexpr bool planted = false;
  static constexpr bool alone() { return false; }
  static constexpr Lag on(std::uint32_t, std::uint64_t) { return {}; }
  static constexpr std::uint64_t answer_ps(std::uint64_t) { return 0; }
};

class Trouble {
 public:
  class Toll;

  // None without faults. Throws SpecError.
  static std::unique_ptr<Trouble> planted_in(const Spec& spec, const Dragonfly& topology);
  Trouble(const Spec& spec, const Dragonfly& topology);

  // Throws SpecError for a fault of a link between switches, which this level does not have.
  void refuse_between_switches(const Spec& spec) const;
  // Until it has got through, each time as `attempt(load, toll)` has it. Throws SpecError where the NIC gives it up.
  template <class Attempt>
  Carried carry(const Load& load, const Attempt& attempt);
  // At the instant of the load that is on its way.
  fabric::Manager& manager() { return manager_; }

 private:
  // Behind a load that was lost: the ordered ones of its two NICs that left before it was sent again.
  struct Line {
    Instant sent_again;
    Instant arrived;
  };
  // It may be sent once more, at an instant that this says.
  Instant next_try(const Load& load, std::size_t timeouts, Instant last) const;
  Carried in_line(const Load& load, const Carried& times);

  Wires wires_;
  fabric::Wiring wiring_;
  fabric::FaultPlan plan_;
  fabric::LinkFaults faults_;
  Instant now_;
  fabric::Manager manager_;
  std::map<std::pair<NicId, NicId>, Line> lines_;
};

// Of one load on its way, link by link, as often as it is sent.
class Trouble::Toll {
 public:
  static constexpr bool planted = true;
  Toll(Trouble& trouble, const Load& load, bool again);

  // The load's head enters the link that this port drives.
  Lag on(std::uint32_t port, std::uint64_t at_ps);
  // How much later the answer is home that leaves then, over the same links.
  std::uint64_t answer_ps(std::uint64_t at_ps);
  // It meets no other load, nor does any meet it: it is sent again, or is lost already.
  bool alone() const { return again_ || lost_; }
  bool lost() const { return lost_; }
  bool answer_lost() const { return answer_lost_; }

 private:
  Trouble& trouble_;
  std::uint64_t serial_ps_;
  std::uint64_t packets_;
  std::uint64_t stretched_ps_ = 0;  // behind its first packet, by the slowest link so far
  std::array<std::uint32_t, fabric::most_switches + 1> ports_{};
  std::size_t links_ = 0;
  bool again_;
  bool lost_ = false;
  bool answer_lost_ = false;
};

// The network gives it up at that instant: throws SpecError that names the NICs and the fault that they have met.
[[noreturn]] void refuse_given_up(const fabric::FaultPlan& plan, const fabric::Wiring& wiring, const Load& load,
                                  Instant now);
// Throws SpecError where a drain takes out a NIC of the job.
void refuse_drained(const Spec& spec, const Dragonfly& topology, const Placement& placement);

template <class Attempt>
Carried Trouble::carry(const Load& load, const Attempt& attempt) {
  Load again = load;
  std::optional<Carried> first;
  bool arrived = false;
  for (std::size_t timeouts = 0;; ++timeouts) {
    now_ = again.ready;
    Toll toll(*this, again, timeouts > 0);
    const Carried times = attempt(again, toll);
    if (!first) {
      first = times;
      if (load.ordered && lines_.contains({load.from, load.to})) {
        const Line& line = lines_.at({load.from, load.to});
        if (load.ready < line.sent_again) return in_line(load, times);
        lines_.erase({load.from, load.to});
      }
    }
    first->sent_again = timeouts > 0;
    first->answered = times.answered;
    if (!toll.lost() && !arrived) {
      arrived = true;
      first->arrived = times.arrived;
      if (load.ordered && timeouts > 0) lines_[{load.from, load.to}] = {again.ready, times.arrived};
    }
    if (!toll.lost() && !toll.answer_lost()) return *first;
    again.ready = next_try(load, timeouts, again.ready);
  }
}

}  // namespace dryfly::motif
