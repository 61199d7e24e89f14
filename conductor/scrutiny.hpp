// Whether what a rank has put into its ring can be a command at all. The ring is memory of a process that we do not
// know: a program that writes where it should not may damage it. Then the job ends with a sentence, or on a served
// fabric that process is cut off, and the conductor stays whole (Conductor::damaged).
//
// Left out: what is well-formed and wrong, such as a payload's address, which ends in an error of that operation; and
// the rest of the segment, where damage mostly ends in a wrong clock or a rank that waits for ever.
#pragma once

#include <cstdint>

#include "conductor/rank.hpp"
#include "core/topology/dragonfly.hpp"
#include "wire/wire.hpp"

namespace dryfly {

class Scrutiny {
 public:
  Scrutiny(const wire::SegmentHeader& header, const Dragonfly& topology) : header_(header), topology_(topology) {}

  // What is wrong with it, or null. `room`: bytes from the record on that are pushed and before the ring's end.
  // `payload`: what is behind the command.
  const char* fault_of(const wire::Command& command, const Rank& rank, std::uint64_t room, const char* payload) const;

 private:
  const char* fault_of_payload(const wire::Command& command) const;
  const char* fault_of_atomic(const wire::Command& command) const;
  const char* fault_of_group(const wire::Command& command, const char* payload) const;
  const char* fault_of_opening(const wire::Command& command, const Rank& rank, const char* payload) const;

  const wire::SegmentHeader& header_;
  const Dragonfly& topology_;
};

}  // namespace dryfly
