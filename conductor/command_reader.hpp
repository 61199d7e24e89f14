// Takes commands out of the ranks' rings, once each has been looked at (scrutiny.hpp).
#pragma once

#include <cstdint>

#include "conductor/command_issuer.hpp"
#include "conductor/command_queue.hpp"
#include "conductor/endpoints.hpp"
#include "conductor/open_command.hpp"
#include "conductor/peeks.hpp"
#include "conductor/processor_work.hpp"
#include "conductor/rank.hpp"
#include "conductor/scrutiny.hpp"
#include "conductor/segment.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

// What it needs of the others.
struct ReaderParts {
  OpenCommands& commands;
  CommandQueue& queue;
  Endpoints& endpoints;
  CommandIssuer& issuer;
  ProcessorWork& work;
  TroubleOutlet& trouble;
  Peeks& peeks;
};

class CommandReader {
 public:
  CommandReader(Segment& segment, const Dragonfly& topology, const ReaderParts& parts)
      : ring_bytes_(segment.header().command_ring_bytes), scrutiny_(segment.header(), topology), parts_(parts) {}

  // Everything that is in the rank's ring.
  void drain(Rank& rank);
  // The process that was this rank has ended: what it had issued takes its course, then its end-points close.
  void abandon(Rank& rank);

 private:
  // A record, for which there are `room` bytes. How many it has; none: it is refused.
  std::uint64_t take(Rank& rank, const char* record, std::uint64_t room);
  const char* fault_of(const Rank& rank, const wire::Command& command, std::uint64_t room, const char* payload) const;

  std::uint32_t ring_bytes_;
  Scrutiny scrutiny_;
  ReaderParts parts_;
};

}  // namespace dryfly
