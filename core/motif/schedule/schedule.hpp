// Recorded schedules: what each rank of a program calls, one verb behind the other, as python/dryfly/skeleton writes
// it. Ranks that call the same, seen from where each is, share one list, so that a regular program of a million ranks
// is a few lists.
//
// The file, little-endian: "dfsched1"; five 32-bit numbers: ranks, lists, groups, phases, bytes of the text; the text,
// name of the program's file and of each phase, each ended by a zero byte; for each group its size and its members, for
// each rank its list, for each list how many instructions it has and how many requests are open at once, 32 bits each;
// the instructions of all lists.
//
// Left out: payloads, and control flow that depends on them; communicators as a part of matching.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/motif/job/rank.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::motif {

class Job;
class Selection;

enum class Verb : std::uint8_t {
  compute,  // size: picoseconds
  isend,
  irecv,
  put,
  get,
  send,
  recv,
  wait,  // peer: another request, or no_slot
  wait_all,
  phase,    // peer: its number, 0 for none
  barrier,  // from here on collectives; slot: the group, 0 for all ranks; peer: the root's place in it
  fence,
  bcast,
  reduce,
  allreduce,
  alltoall,
  allgather,
  reduce_scatter,
  gather,
  scatter,
  count
};

inline constexpr std::uint32_t no_slot = ~std::uint32_t{0};

// As it is in the file.
struct Instruction {
  std::uint32_t word = 0;  // the verb, and from bit 8 on the line of the program
  std::uint32_t slot = 0;  // of the request
  std::uint32_t peer = 0;  // counted from the rank itself, round all ranks; any_rank
  std::uint32_t tag = 0;
  std::uint64_t size = 0;

  Verb verb() const { return static_cast<Verb>(word & 255); }
  std::uint32_t line() const { return word >> 8; }
  bool sends() const { return verb() == Verb::isend || verb() == Verb::send; }
  bool receives() const { return verb() == Verb::irecv || verb() == Verb::recv; }
};
static_assert(sizeof(Instruction) == 24);

struct Listing {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // one behind it
  std::uint32_t slots = 0;
};

struct Schedule {
  std::string program;
  std::vector<std::string> phases;                 // 1 and on
  std::vector<std::vector<std::uint32_t>> groups;  // 1 and on, members in ascending order
  LargeVector<std::uint32_t> list_of;              // each rank's
  LargeVector<Listing> lists;
  LargeVector<Instruction> instructions;

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(list_of.size()); }
  // Of a rank's instruction.
  std::uint32_t peer(std::uint32_t rank, const Instruction& instruction) const {
    if (instruction.peer == any_rank) return any_rank;
    return static_cast<std::uint32_t>((std::uint64_t{rank} + instruction.peer) % ranks());
  }
};

// Throw SpecError: a file that is damaged; an instruction that cannot be, and a message that nobody receives, by rank
// and line.
Schedule parse_schedule(const std::string& path, std::string_view bytes);
Schedule read_schedule(const std::string& path);
void check_schedule(const Schedule& schedule);
[[noreturn]] void fail_at(const Schedule& schedule, std::uint32_t rank, std::uint64_t index, const std::string& what);

// Runs it on the first ranks of the job, each until all is complete that it has begun. `library` chooses the algorithms
// of collectives; without one each has always the same. Throws SpecError where ranks wait for each other, by rank and
// line.
void play_all(Job& job, const Schedule& schedule, const Selection* library = nullptr);

}  // namespace dryfly::motif
