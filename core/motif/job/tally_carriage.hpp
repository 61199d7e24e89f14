// Carries without a network, to count what a job would give one: packets, before they are simulated one by one. The
// instants are those of an empty way between two groups, whoever sends, so that programs go on; nobody waits for
// others.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "core/motif/job/carriage.hpp"
#include "core/motif/job/wires.hpp"

namespace dryfly::motif {

// Of all jobs of a workload together.
struct Tally {
  std::uint64_t packets_most = 0;
  std::uint64_t packets = 0;
  std::uint64_t loads = 0;  // messages, and requests for long ones

  bool is_over() const { return packets > packets_most; }
};

// What is thrown when a tally is over, out of the program that sends.
class TallyOver : public std::exception {};

class TallyCarriage final : public Carriage {
 public:
  TallyCarriage(const Spec& spec, Tally& tally) : wires_(Wires::read(spec)), tally_(tally) {}

  Bytes part() const override { return Bytes{std::uint64_t{1} << 40}; }
  std::optional<Carried> carry(const Load& load) override {
    ++tally_.loads;
    tally_.packets += wires_.packets(load.size);
    if (tally_.is_over()) throw TallyOver();
    const Duration serial{wires_.serialisation_ps(load.size)};
    const Duration way{wires_.way_ps(2, 1)};
    const Instant arrived = load.ready + way + serial;
    return Carried{
        .left = load.ready + serial, .arrived = arrived, .answered = arrived + way + Duration{wires_.ack_ps}};
  }

 private:
  const Wires wires_;
  Tally& tally_;
};

}  // namespace dryfly::motif
