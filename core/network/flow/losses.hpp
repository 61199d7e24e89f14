// What faults do to flows: links that carry less, ways that are avoided, and packets that are lost.
//
// Links, their faults and what the routes know of them are those of the packet model (core/network/fabric). A pipe has
// the capacity of its links as they are now: with lanes out, replays, or taken out of the routes. A link that is down
// before the routes know it eats what it is given. Of a short transfer that is looked at link by link for the time in
// which it is there; a stream is looked at in some slices of its time, each on a way of its own and standing for as
// many of its packets (docs/model/flows.md#losses).
#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/fabric/link_faults.hpp"
#include "core/network/fabric/manager.hpp"
#include "core/network/flow/pipes.hpp"

namespace dryfly::flow {

class Losses {
 public:
  Losses(const fabric::FaultPlan& plan, const Dragonfly& dragonfly, const Engine& engine, const fabric::Wiring& wiring,
         Instant start, std::uint64_t frame_ps);

  fabric::LinkFaults& faults() { return faults_; }
  const fabric::LinkFaults& faults() const { return faults_; }
  fabric::Manager& manager() { return manager_; }
  const fabric::Manager& manager() const { return manager_; }

  // Sets the capacities that have changed, if it is time for that: true if there were any.
  bool look(Pipes& pipes);
  // When it will be the next time; never.
  std::uint64_t next_look_ps() const { return next_ < changes_.size() ? changes_[next_] : never.ps; }
  // Whether an event has to be scheduled for that; there is one at a time, until look_is_over().
  bool asks_for_look() {
    if (next_look_ps() >= look_at_ps_) return false;  // what comes before will ask again
    look_at_ps_ = next_look_ps();
    return true;
  }
  void look_is_over() { look_at_ps_ = never.ps; }
  void end(Pipes& pipes);

  // Packets that are on each of these links, one after the other, for that long from that instant on: whether they are
  // lost on one, and then how many were is noted there.
  bool lose(const std::vector<std::uint32_t>& ports, std::uint64_t from_ps, std::uint64_t for_ps,
            std::uint64_t packets);
  // How much later so many packets are for lanes and replays on these links; draws the replays.
  std::uint64_t delay_ps(const std::vector<std::uint32_t>& ports, std::uint64_t at_ps, std::uint64_t transmission_ps,
                         std::uint64_t packets);

 private:
  double worth(std::uint32_t port) const;

  const Engine& engine_;
  const fabric::Wiring& wiring_;
  fabric::LinkFaults faults_;
  fabric::Manager manager_;
  std::vector<std::uint32_t> ports_;
  std::vector<std::uint64_t> changes_;
  std::size_t next_ = 0;
  std::uint64_t look_at_ps_ = never.ps;  // of the event that is expected
  std::uint64_t frame_ps_;
};

}  // namespace dryfly::flow
