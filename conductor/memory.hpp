// Reading and writing the memory of a rank from the conductor: by cross-memory attach, or, where the system forbids
// that, by asking the rank to copy between its memory and the arena the next time it enters the provider.
#pragma once

#include <cstddef>
#include <cstdint>

#include "conductor/segment.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// From one process to another, where cross-memory attach is allowed: 0 or a positive errno.
int copy_between(std::uint32_t from_pid, std::uint64_t from, std::uint32_t to_pid, std::uint64_t to,
                 std::uint64_t bytes);

class RankMemory {
 public:
  RankMemory(Segment& segment, wire::Arena& arena) : segment_(segment), arena_(arena) {}

  // All return 0 or a positive errno. `pid` is the process attached as `rank`.
  int read(RankId rank, std::uint32_t pid, std::uint64_t address, void* to, std::uint64_t bytes);
  int write(RankId rank, std::uint32_t pid, std::uint64_t address, const void* from, std::uint64_t bytes);

 private:
  int ask(RankId rank, std::uint32_t pid, bool is_write, std::uint64_t address, char* data, std::uint64_t bytes);

  Segment& segment_;
  wire::Arena& arena_;
};

}  // namespace dryfly
