// Groups and their reductions between the wire and the NICs: joins and contributions that the ranks ask for, and what
// becomes of them.
#include <cstring>

#include "conductor/translator.hpp"

namespace dryfly {

using wire::EventKind;

namespace {

// For one packet of a group that is being formed: a send and a completion, and the way to the NIC and from it.
Duration step_of(const wire::HostCosts& costs, Duration command_latency, Duration completion_latency,
                 const NicSpec& spec) {
  return Duration{costs.send_ps + costs.completion_ps} + command_latency + completion_latency + spec.egress_latency +
         spec.ingress_latency;
}

}  // namespace

void Translator::execute_join(std::uint32_t slot, OpenCommand& open) {
  const auto piece = groups_.add_piece(open.endpoint(), open.command, commands_.inline_bytes(open), slot);
  switch (piece) {
    case Groups::Piece::incomplete:
      return commands_.release(slot);
    case Groups::Piece::waits:
      return;
    case Groups::Piece::complete:
      return begin_join(groups_.last_join());
    case Groups::Piece::refused:
      PendingEvent pending = event_for(open, EventKind::joined);
      pending.event.error = error_join_other;
      const RankId rank = open.rank;
      commands_.release(slot);
      return emit(rank, std::move(pending));
  }
}

void Translator::begin_join(Token token) {
  Groups::Forming& join = groups_.forming(token);
  std::vector<NicId> nics;
  for (const EndpointId member : join.members) nics.push_back(nics_->nic_of(member));
  groups_.plant(join, nics);
  if (join.error == 0) join.group = groups_.add_group(join.tree, nics_->open_group(join.tree));
  nics_->join({.members = join.members,
               .radix = join.settings.radix,
               .step = step_of(segment_.header().costs, command_latency_, completion_latency_, nics_->spec()),
               .token = token});
}

void Translator::joined(Token token, std::uint32_t member, int error) {
  Groups::Forming& join = groups_.forming(token);
  const std::uint32_t slot = join.slots[member];
  const OpenCommand& open = commands_[slot];
  PendingEvent pending = event_for(open, EventKind::joined);
  pending.event.data = join.group;
  pending.event.tag = member;
  pending.event.error = join.error;
  if (error != 0) pending.event.error = error_join_other;
  const RankId rank = open.rank;
  commands_.release(slot);
  if (--join.untold == 0) groups_.forget(token);
  emit(rank, std::move(pending));
}

void Translator::execute_contribution(std::uint32_t slot, OpenCommand& open) {
  const wire::Command& command = open.command;
  Groups::Group* group = groups_.find(command.key);
  if (group == nullptr) return commands_.release(slot);
  const auto member = static_cast<std::uint32_t>(command.tag);
  if (!group->has(member, open.endpoint())) return refuse_command(slot, "group");
  wire::Contribution& part = groups_.reduction(*group, command.data).parts[member];
  if (part.count != 0) return refuse_command(slot, "contribution");
  std::memcpy(&part, commands_.inline_bytes(open), sizeof part);
  nics_->contribute({.group = group->number,
                     .member = member,
                     .sequence = command.data,
                     .token = slot,
                     .by_dma = (command.flags & wire::command_flag::by_dma) != 0});
}

void Translator::reduced(Token part, int error) {
  OpenCommand& open = commands_[part];
  const wire::Command command = open.command;
  const RankId rank = open.rank;
  PendingEvent pending = event_for(open, EventKind::reduced);
  commands_.release(part);
  pending.event.error = error;
  pending.event.length = command.aux;
  pending.event.tag = command.key;
  Groups::Group* group = groups_.find(command.key);
  if (group == nullptr) return;
  Groups::Reduction& reduction = groups_.reduction(*group, command.data);
  if (error == 0) {
    if (!reduction.combined) reduction.all = combine_in(group->tree, reduction.parts);
    reduction.combined = true;
    pending.event.data = reduction.all.status;
    if (command.aux > 0) pending.event.flags |= wire::event_flag::payload_inline;
    pending.event.place_length = command.aux;
    pending.inline_payload.resize(command.aux);
    wire::finish(reduction.all, pending.inline_payload.data(), command.aux);
    tally_.reduced(group->tree.members[group->tree.root], rank, Bytes{command.aux});
  }
  if (--reduction.untold == 0) group->reductions.erase(command.data);
  emit(rank, std::move(pending));
}

void Translator::execute_leave(std::uint32_t slot, const OpenCommand& open) {
  const wire::Command& command = open.command;
  const Groups::Group* group = groups_.find(command.key);
  const auto member = static_cast<std::uint32_t>(command.tag);
  if (group != nullptr && !group->has(member, open.endpoint())) return refuse_command(slot, "group");
  leave_group(command.key, member);
  commands_.release(slot);
}

void Translator::leave_group(std::uint64_t key, std::uint32_t member) {
  Groups::Group* group = groups_.find(key);
  if (group == nullptr || !groups_.leave(*group, member)) return;
  nics_->close_group(group->number);
  groups_.erase(key);
}

void Translator::leave_groups(EndpointId endpoint) {
  for (const auto& [key, member] : groups_.forget_member(endpoint)) leave_group(key, member);
}

}  // namespace dryfly
