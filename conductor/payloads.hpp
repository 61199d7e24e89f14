// Where the bytes of open commands are, and the ways they take: behind the command's record, in a block of the arena,
// or still in the memory of the process that sends them. Accesses move them at their instant; of a message the
// receiving process moves them when it takes the event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conductor/memory.hpp"
#include "conductor/open_command.hpp"
#include "conductor/rank.hpp"
#include "conductor/segment.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

class Payloads {
 public:
  Payloads(Segment& segment, std::vector<Rank>& ranks, OpenCommands& commands);

  // Tells the receiver of a message where its bytes are; `place_length` of them are for its buffer.
  void attach(PendingEvent& pending, OpenCommand& send, std::uint64_t place_length, RankId receiver);
  // Takes bytes out of the rank's memory now, as many as an eager message has; longer ones are read when they arrive.
  void stage(OpenCommand& open);
  // Nobody wants the bytes any more.
  void free(OpenCommand& open);

  // An access to the target's memory, now: 0 or a positive errno.
  int write(OpenCommand& open, RankId target, std::uint64_t address);
  int read(OpenCommand& open, RankId target, std::uint64_t address);
  int update(OpenCommand& open, RankId target, std::uint64_t address);  // an atomic
  // Up to eight bytes of the rank's memory as they are now, as a number; 0 where there are none.
  std::uint64_t look(RankId rank, std::uint64_t address, std::uint64_t bytes);
  // What a read or a fetching atomic has brought goes to whoever has asked; false: it brings nothing.
  static bool attach_result(PendingEvent& pending, const OpenCommand& open);

 private:
  std::byte* bytes_of(OpenCommand& open);
  std::byte* make_result(OpenCommand& open, std::uint64_t bytes);
  int write_from_memory(const OpenCommand& open, RankId target, std::uint64_t address);

  Segment& segment_;
  std::vector<Rank>& ranks_;
  OpenCommands& commands_;
  wire::Arena arena_;
  RankMemory memory_;
};

// Bytes that an access reads or changes at its target.
std::uint64_t bytes_at_target(const wire::Command& command);

}  // namespace dryfly
