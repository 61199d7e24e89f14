#include "conductor/reductions.hpp"

#include <cstring>
#include <utility>
#include <vector>

namespace dryfly {

using wire::EventKind;

void Reductions::join(std::uint32_t slot) {
  const OpenCommand& open = commands_[slot];
  switch (groups_.add_piece(open.endpoint(), open.command, commands_.inline_bytes(open), slot)) {
    case CollectiveGroups::Piece::incomplete:
      return commands_.release(slot);
    case CollectiveGroups::Piece::waits:
      return;
    case CollectiveGroups::Piece::complete:
      return begin(groups_.last_join());
    case CollectiveGroups::Piece::refused:
      PendingEvent pending = EventWriter::answer_to(open, EventKind::joined);
      pending.event.error = error_join_other;
      const RankId rank = open.rank;
      commands_.release(slot);
      return events_.write(rank, std::move(pending));
  }
}

void Reductions::begin(Token token) {
  CollectiveGroups::Forming& join = groups_.forming(token);
  std::vector<NicId> nics;
  for (const EndpointId member : join.members) nics.push_back(nics_.nic_of(member));
  groups_.plant(join, nics);
  if (join.error == 0) join.group = groups_.add_group(join.tree, nics_.open_group(join.tree));
  nics_.join({.members = join.members,
              .radix = join.settings.radix,
              .step = software_step_ + nics_.spec().egress_latency + nics_.spec().ingress_latency,
              .token = token});
}

void Reductions::joined(Token token, std::uint32_t member, int error) {
  CollectiveGroups::Forming& join = groups_.forming(token);
  DRYFLY_CHECK(member < join.slots.size() && join.untold > 0);
  const std::uint32_t slot = join.slots[member];
  const OpenCommand& open = commands_[slot];
  PendingEvent pending = EventWriter::answer_to(open, EventKind::joined);
  pending.event.new_group = join.group;
  pending.event.member = member;
  pending.event.error = error == 0 ? join.error : error_join_other;
  const RankId rank = open.rank;
  commands_.release(slot);
  if (--join.untold == 0) groups_.forget(token);
  events_.write(rank, std::move(pending));
}

const char* Reductions::contribute(std::uint32_t slot) {
  const OpenCommand& open = commands_[slot];
  const wire::Command& command = open.command;
  CollectiveGroups::Group* group = groups_.find(command.group);
  if (group == nullptr) {
    commands_.release(slot);
    return nullptr;
  }
  const auto member = static_cast<std::uint32_t>(command.member);
  if (!group->has(member, open.endpoint())) return "group";
  wire::Contribution& part = groups_.reduction(*group, command.sequence).parts[member];
  if (part.count != 0) return "contribution";
  std::memcpy(&part, commands_.inline_bytes(open), sizeof part);
  nics_.contribute({.group = group->number,
                    .member = member,
                    .sequence = command.sequence,
                    .token = slot,
                    .by_dma = (command.flags & wire::command_flag::by_dma) != 0});
  return nullptr;
}

void Reductions::reduced(Token part, int error) {
  const OpenCommand& open = commands_[part];
  const wire::Command command = open.command;
  const RankId rank = open.rank;
  PendingEvent pending = EventWriter::answer_to(open, EventKind::reduced);
  commands_.release(part);
  pending.event.error = error;
  pending.event.length = command.result_bytes;
  pending.event.group = command.group;
  CollectiveGroups::Group* group = groups_.find(command.group);
  if (group == nullptr) return;
  CollectiveGroups::Reduction& reduction = groups_.reduction(*group, command.sequence);
  if (error == 0) {
    attach_result(pending, *group, reduction, command.result_bytes);
    tally_.reduced(group->tree.members[group->tree.root], rank, Bytes{command.result_bytes});
  }
  DRYFLY_CHECK(reduction.untold > 0);
  if (--reduction.untold == 0) group->reductions.erase(command.sequence);
  events_.write(rank, std::move(pending));
}

void Reductions::attach_result(PendingEvent& pending, CollectiveGroups::Group& group,
                               CollectiveGroups::Reduction& reduction, std::uint64_t bytes) {
  if (!reduction.combined) reduction.all = combine_in(group.tree, reduction.parts);
  reduction.combined = true;
  pending.event.status = reduction.all.status;
  if (bytes > 0) pending.event.flags |= wire::event_flag::payload_inline;
  pending.event.place_length = bytes;
  pending.inline_payload.resize(bytes);
  wire::finish(reduction.all, pending.inline_payload.data(), bytes);
}

const char* Reductions::leave(std::uint32_t slot) {
  const OpenCommand& open = commands_[slot];
  const std::uint64_t key = open.command.group;
  const auto member = static_cast<std::uint32_t>(open.command.member);
  const CollectiveGroups::Group* group = groups_.find(key);
  if (group != nullptr && !group->has(member, open.endpoint())) return "group";
  commands_.release(slot);
  leave(key, member);
  return nullptr;
}

void Reductions::leave(std::uint64_t key, std::uint32_t member) {
  CollectiveGroups::Group* group = groups_.find(key);
  if (group == nullptr || !groups_.leave(*group, member)) return;
  nics_.close_group(group->number);
  groups_.erase(key);
}

void Reductions::leave_all(EndpointId endpoint) {
  for (const auto& [key, member] : groups_.forget_member(endpoint)) leave(key, member);
}

}  // namespace dryfly
