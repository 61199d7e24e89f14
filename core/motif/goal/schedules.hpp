// GOAL schedules, the input of LogGOPSim and ATLAHS (T. Hoefler, T. Schneider, A. Lumsdaine: LogGOPSim - Simulating
// Large-Scale Applications in the LogGOPS Model, HPDC 2010; the text form is that of its txt2bin): for each rank steps
// that compute, send or receive, and which of them wait for which. Read from text into 40 bytes for a step and four for
// a dependence.
//
// Left out: the binary form, which is a picture of LogGOPSim's memory; the step's `nic`, which is read and ignored,
// because the placement says which NIC a rank has; the size of a receive, which matches a message of any size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/motif/job/rank.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif::goal {

inline constexpr std::uint32_t no_step = ~std::uint32_t{0};

enum class StepKind : std::uint8_t { calc, send, receive };

struct Step {
  std::uint64_t size = 0;  // bytes; of a calc its number
  std::uint64_t ready_ps = 0;
  std::uint32_t peer = 0;  // of a receive: may be any_rank
  std::uint32_t tag = 0;   // of a receive: may be any_tag
  std::uint32_t line = 0;
  std::uint32_t waiting = 0;    // for so many others; then the next in its stream's queue
  std::uint32_t followers = 0;  // where the list of those that wait for it begins
  StepKind kind = StepKind::calc;
  std::uint8_t stream = 0;  // `cpu`
  bool begun = false;
  bool done = false;
};
static_assert(sizeof(Step) == 40);

struct Follower {
  static constexpr std::uint32_t on_begin = std::uint32_t{1} << 31;  // irequires
  std::uint32_t word = 0;

  std::uint32_t step() const { return word & ~on_begin; }
  bool waits_for_begin() const { return (word & on_begin) != 0; }
};

// A rank's steps lie one behind the other.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;  // one behind it
  std::uint32_t line = 0;  // where it begins; 0: the file has nothing of this rank
};

struct Schedules {
  LargeVector<Step> steps;  // and one behind them, for its `followers`
  LargeVector<Follower> followers;
  LargeVector<Range> ranks;

  std::uint32_t count() const { return static_cast<std::uint32_t>(ranks.size()); }
};

// Throw SpecError, which names the file, the line, and the rank where there is one.
Schedules parse(const std::string& file_name, std::string_view text);
Schedules read(const std::string& path);

// What can be known in advance to stand still or to lose a message: a circle of dependences, and a message that nobody
// receives, or a receive that nobody sends to. Throws SpecError.
void check(const std::string& file_name, const Schedules& schedules);

}  // namespace dryfly::motif::goal
