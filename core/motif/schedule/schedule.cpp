#include "core/motif/schedule/schedule.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "core/motif/schedule/balance.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

constexpr std::string_view format = "dfsched1";
constexpr std::uint64_t most_ranks = std::uint64_t{1} << 24;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
constexpr std::uint64_t most_ps = 86'400'000'000'000'000;  // a day

class Reader {
 public:
  Reader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  Schedule read() {
    if (take(format.size()) != format) fail("it is no schedule that dryfly has written");
    const std::uint32_t ranks = number();
    const std::uint32_t lists = number();
    const std::uint32_t groups = number();
    const std::uint32_t phases = number();
    if (ranks == 0 || ranks > most_ranks) fail("it has " + std::to_string(ranks) + " ranks");
    read_names(number(), phases);
    for (std::uint32_t group = 0; group < groups; ++group) read_group(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      out_.list_of.push_back(number());
      if (out_.list_of.back() >= lists) fail("a rank has a list that is not there");
    }
    std::uint64_t next = 0;
    for (std::uint32_t list = 0; list < lists; ++list) {
      const std::uint64_t first = next;
      next += number();
      out_.lists.push_back({first, next, number()});
      if (out_.lists.back().slots > next - first) fail("a list has more requests than instructions");
    }
    const std::string_view rest = bytes_.substr(at_);
    if (rest.size() != next * sizeof(Instruction)) fail("its end is missing, or there is more than its end");
    out_.instructions.resize(next);
    std::memcpy(out_.instructions.data(), rest.data(), rest.size());
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw SpecError("file = `" + path_ + "`: " + why); }

  std::string_view take(std::size_t count) {
    if (bytes_.size() - at_ < count) fail("it ends too early");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  void read_names(std::size_t length, std::uint32_t phases) {
    std::string_view text = take(length);
    for (std::uint64_t name = 0; name <= phases; ++name) {
      const std::size_t end = text.find('\0');
      if (end == std::string_view::npos) fail("a name is missing");
      if (name == 0) out_.program = text.substr(0, end);
      out_.phases.emplace_back(name == 0 ? "" : text.substr(0, end));
      text.remove_prefix(end + 1);
    }
  }

  void read_group(std::uint32_t ranks) {
    if (out_.groups.empty()) out_.groups.emplace_back();
    const std::uint32_t size = number();
    if (size == 0) fail("a group has no members");
    std::vector<std::uint32_t> members;
    for (std::uint32_t member = 0; member < size; ++member) {
      members.push_back(number());
      const bool ascends = member == 0 || members[member - 1] < members[member];
      if (members.back() >= ranks || !ascends) fail("a group's members are not in order, or no ranks");
    }
    out_.groups.push_back(std::move(members));
  }

  const std::string& path_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  Schedule out_;
};

// A reason, or none.
const char* wrong_in(const Schedule& schedule, const Listing& list, const Instruction& instruction) {
  if (instruction.verb() >= Verb::count) return "has a verb that there is not";
  const std::uint64_t most = instruction.verb() == Verb::compute ? most_ps : most_bytes;
  if (instruction.size > most)
    return instruction.verb() == Verb::compute ? "computes for longer than a day" : "has more than 2^40 bytes";
  switch (instruction.verb()) {
    case Verb::isend:
    case Verb::irecv:
    case Verb::put:
    case Verb::get:
      if (instruction.slot >= list.slots) return "has a request that there is not";
      break;
    case Verb::wait:
      if (instruction.slot >= list.slots) return "waits for a request that there is not";
      if (instruction.peer != no_slot && instruction.peer >= list.slots) return "waits for a request that there is not";
      return nullptr;
    case Verb::phase:
      return instruction.peer >= schedule.phases.size() ? "enters a phase that there is not" : nullptr;
    case Verb::compute:
    case Verb::wait_all:
      return nullptr;
    default:
      break;
  }
  if (instruction.verb() >= Verb::barrier) {
    if (instruction.slot != 0 && instruction.slot >= schedule.groups.size()) return "is over a group that there is not";
    const std::size_t size = instruction.slot == 0 ? schedule.ranks() : schedule.groups[instruction.slot].size();
    return instruction.peer >= size ? "has a root that is not in its group" : nullptr;
  }
  const bool any = instruction.receives() && instruction.peer == any_rank;
  return !any && instruction.peer >= schedule.ranks() ? "names a rank that there is not" : nullptr;
}

void each_exchange(const Schedule& schedule, const std::function<void(const Exchange&)>& visit) {
  for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const Listing& list = schedule.lists[schedule.list_of[rank]];
    for (std::uint64_t index = list.first; index < list.last; ++index) {
      const Instruction& one = schedule.instructions[index];
      if (!one.sends() && !one.receives()) continue;
      const std::uint32_t peer = schedule.peer(rank, one);
      visit({.source = one.sends() ? rank : peer,
             .target = one.sends() ? peer : rank,
             .tag = one.tag,
             .sends = one.sends(),
             .step = index});
    }
  }
}

std::uint32_t first_rank_of(const Schedule& schedule, std::uint32_t list) {
  std::uint32_t rank = 0;
  while (rank + 1 < schedule.ranks() && schedule.list_of[rank] != list) ++rank;
  return rank;
}

// The members of a group call the same collectives in the same order.
class Collectives {
 public:
  explicit Collectives(const Schedule& schedule) : schedule_(schedule), first_(schedule.groups.size() + 1) {}

  void check() {
    for (std::uint32_t rank = 0; rank < schedule_.ranks(); ++rank) read(rank);
    for (std::uint32_t group = 1; group < schedule_.groups.size(); ++group) check_members(group);
  }

 private:
  struct Calls {
    std::uint64_t print = 0;
    std::uint64_t last = 0;  // instruction
    std::uint32_t rank = any_rank;
    std::uint32_t members = 0;
  };

  // Lists without groups are read once, for the first rank that has them.
  void read(std::uint32_t rank) {
    const std::uint32_t number = schedule_.list_of[rank];
    if (number < read_.size() && read_[number]) return;
    const Listing& list = schedule_.lists[number];
    bool has_groups = false;
    std::map<std::uint32_t, Calls> calls{{0, {.last = list.first, .rank = rank}}};
    for (std::uint64_t index = list.first; index < list.last; ++index) {
      const Instruction& one = schedule_.instructions[index];
      if (one.verb() < Verb::barrier) continue;
      if (one.slot != 0) check_member(rank, index, one.slot);
      has_groups = has_groups || one.slot != 0;
      Calls& its = calls[one.slot];
      its.print = mix(its.print ^ mix(std::uint64_t{one.peer} << 8 | (one.word & 255)) ^ one.size);
      its.last = index;
      its.rank = rank;
    }
    if (!has_groups) {
      read_.resize(schedule_.lists.size());
      read_[number] = true;
    }
    for (const auto& [group, its] : calls) compare(group, its);
  }

  void check_member(std::uint32_t rank, std::uint64_t index, std::uint32_t group) const {
    const std::vector<std::uint32_t>& members = schedule_.groups[group];
    if (std::binary_search(members.begin(), members.end(), rank)) return;
    fail_at(schedule_, rank, index, "this call is over a group that the rank is not in");
  }

  void compare(std::uint32_t group, const Calls& its) {
    Calls& first = first_[group];
    const std::uint32_t members = first.members + 1;
    if (first.rank == any_rank) first = its;
    first.members = members;
    if (first.print == its.print) return;
    if (first.print == 0 || its.print == 0) {
      const bool first_has = first.print != 0;
      throw SpecError(schedule_.program + ": rank " + std::to_string(first_has ? its.rank : first.rank) +
                      " calls no collective of all ranks, and rank " +
                      std::to_string(first_has ? first.rank : its.rank) + " does");
    }
    fail_at(
        schedule_, its.rank, its.last,
        "the collectives of this rank, of which this is the last, are not those of rank " + std::to_string(first.rank));
  }

  void check_members(std::uint32_t group) const {
    const Calls& first = first_[group];
    const std::size_t size = schedule_.groups[group].size();
    if (first.members == 0 || first.members == size) return;
    fail_at(schedule_, first.rank, first.last,
            "of the " + std::to_string(size) + " ranks of this group only " + std::to_string(first.members) +
                " call its collectives");
  }

  const Schedule& schedule_;
  std::vector<Calls> first_;  // by group: those of the first of its ranks
  std::vector<bool> read_;
};

}  // namespace

void fail_at(const Schedule& schedule, std::uint32_t rank, std::uint64_t index, const std::string& what) {
  const std::uint32_t line = schedule.instructions[index].line();
  const std::uint64_t place = index - schedule.lists[schedule.list_of[rank]].first;
  throw SpecError(schedule.program +
                  (line != 0 ? ", line " + std::to_string(line) : ", call " + std::to_string(place)) + ", rank " +
                  std::to_string(rank) + ": " + what);
}

Schedule parse_schedule(const std::string& path, std::string_view bytes) { return Reader(path, bytes).read(); }

Schedule read_schedule(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw SpecError("file = `" + path + "`: accepted is a file that can be read");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return parse_schedule(path, bytes);
}

void check_schedule(const Schedule& schedule) {
  for (std::uint32_t number = 0; number < schedule.lists.size(); ++number) {
    const Listing& list = schedule.lists[number];
    for (std::uint64_t index = list.first; index < list.last; ++index) {
      const char* wrong = wrong_in(schedule, list, schedule.instructions[index]);
      if (wrong != nullptr)
        fail_at(schedule, first_rank_of(schedule, number), index, std::string("this call ") + wrong);
    }
  }
  Collectives(schedule).check();
  const auto unmatched = find_unmatched(schedule.ranks(), [&](const auto& visit) { each_exchange(schedule, visit); });
  if (!unmatched) return;
  const Exchange& one = unmatched->exchange;
  const std::string peer = one.sends                ? "to rank " + std::to_string(one.target)
                           : one.source == any_rank ? std::string("from any rank")
                                                    : "from rank " + std::to_string(one.source);
  fail_at(schedule, one.sends ? one.source : one.target, one.step,
          std::string(one.sends ? "the send " : "the receive ") + peer + " " + unmatched->why);
}

}  // namespace dryfly::motif
