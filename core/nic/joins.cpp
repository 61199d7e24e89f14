#include "core/nic/joins.hpp"

#include <algorithm>

namespace dryfly::nic {

namespace {

// zbcoll: agree on a number for the group, tell all of the tree, hear whether all have it.
constexpr std::uint32_t join_passes = 3;

}  // namespace

void Joins::begin(const JoinCommand& command) {
  DRYFLY_CHECK(command.radix > 0 && !command.members.empty());
  const std::uint32_t index = joins_.acquire();
  Join& join = joins_[index];
  join.command = command;
  join.life = ++lives_;
  const auto size = static_cast<std::uint32_t>(command.members.size());
  join.unfinished = size;
  join.places.resize(size, {0, join_passes});
  for (std::uint32_t place = size; place-- > 0;) begin_pass(index, place);
}

void Joins::send(LegKind kind, std::uint32_t join, std::uint32_t from, std::uint32_t to) {
  const std::vector<EndpointId>& members = joins_[join].command.members;
  legs_.send(leg(kind, join, to), members[from], members[to]);
}

// Row by row: the children of a place stand together in the next row.
std::uint32_t Joins::children_in(const Join& join, std::uint32_t place) const {
  const std::uint64_t first = std::uint64_t{place} * join.command.radix + 1;
  const std::uint64_t size = join.command.members.size();
  return first >= size ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(join.command.radix, size - first));
}

void Joins::begin_pass(std::uint32_t index, std::uint32_t place) {
  Join& join = joins_[index];
  join.places[place].missing = children_in(join, place);
  if (join.places[place].missing == 0) all_parts_read(index, place);
}

void Joins::all_parts_read(std::uint32_t index, std::uint32_t place) {
  if (place == 0) return read_down(index, place);
  send(LegKind::join_up, index, place, (place - 1) / joins_[index].command.radix);
}

void Joins::read_down(std::uint32_t index, std::uint32_t place) {
  Join& join = joins_[index];
  const std::uint32_t first = place * join.command.radix + 1;
  for (std::uint32_t i = 0; i < children_in(join, place); ++i) send(LegKind::join_down, index, place, first + i);
  if (--join.places[place].passes_left > 0) return begin_pass(index, place);
  const EndpointId member = join.command.members[place];
  const Token token = join.command.token;
  if (--join.unfinished == 0) {
    join.life = 0;
    joins_.release(index);
  }
  host_.joined(member, token, place, 0);
}

void Joins::arrived(const Leg& leg) {
  if (joins_[leg.owner].life != leg.life) return;
  const Duration step = joins_[leg.owner].command.step;
  switch (leg.kind) {
    case LegKind::join_up:
      return legs_.hold(this->leg(LegKind::join_up_read, leg.owner, leg.place), step);
    case LegKind::join_down:
      return legs_.hold(this->leg(LegKind::join_down_read, leg.owner, leg.place), step);
    case LegKind::join_up_read:
      DRYFLY_CHECK(joins_[leg.owner].places[leg.place].missing > 0);
      if (--joins_[leg.owner].places[leg.place].missing == 0) all_parts_read(leg.owner, leg.place);
      return;
    default:
      return read_down(leg.owner, leg.place);
  }
}

void Joins::lost(const Leg& leg) {
  if (joins_[leg.owner].life != leg.life) return;
  const std::uint32_t index = leg.owner;
  Join& join = joins_[index];
  join.life = 0;
  for (std::uint32_t place = 0; place < join.places.size(); ++place) {
    if (join.places[place].passes_left == 0) continue;
    host_.joined(join.command.members[place], join.command.token, place, error_unreachable);
  }
  joins_.release(index);
}

}  // namespace dryfly::nic
