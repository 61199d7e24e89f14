// What is left in the translator when an end-point closes or a process of a served fabric ends: what it had issued
// takes its course, and nothing of it may meet whoever takes its place.
#include <algorithm>

#include "conductor/translator.hpp"

namespace dryfly {

namespace {

using wire::CommandKind;

bool waits_in_the_nic(CommandKind kind) {
  return kind == CommandKind::receive || kind == CommandKind::tagged_receive || kind == CommandKind::receive_claimed ||
         kind == CommandKind::peek || kind == CommandKind::tagged_peek;
}

}  // namespace

// Nobody has ever had that address.
void Translator::refuse_send(std::uint32_t slot) {
  const EndpointId source = commands_[slot].endpoint();
  dropped(slot);
  send_failed(source, slot, error_unreachable);
}

// An end-point that is opened again is a new one, and a close that was on its way for the old one does nothing.
void Translator::close_endpoint(EndpointId endpoint) {
  Rank& rank = rank_of(endpoint);
  const std::uint32_t index = wire::address_endpoint(endpoint.value);
  if (!rank.endpoints_open[index]) return;
  rank.endpoints_open.reset(index);
  for (const std::uint32_t slot : fences_.close(endpoint)) execute(slot);
  leave_groups(endpoint);
  nics_->close_endpoint(endpoint);
  regions_.erase(endpoint.value);
  if (segment_.header().served != 0) forget_receives(rank, endpoint);
}

// The NIC forgets posted receives and claims without a word, so that their records would stay for ever.
void Translator::forget_receives(Rank& rank, EndpointId endpoint) {
  const auto is_queued = [&](std::uint32_t slot) {
    return std::find(rank.commands.begin(), rank.commands.end(), slot) != rank.commands.end();
  };
  for (std::uint32_t slot = 0; slot < commands_.size(); ++slot) {
    const OpenCommand& open = commands_[slot];
    const bool of_it = waits_in_the_nic(open.command.kind) && open.endpoint() == endpoint;
    if (of_it && !is_queued(slot)) commands_.release(slot);
  }
  std::erase_if(rank.claims, [&](std::uint32_t slot) {
    return commands_[slot].command.kind != CommandKind::peek &&
           commands_[slot].command.kind != CommandKind::tagged_peek;
  });
}

// Opened again before the close of its first life had its turn: what is still queued for that life is void.
void Translator::end_first_life(Rank& rank, EndpointId endpoint) {
  std::erase_if(rank.commands, [&](std::uint32_t slot) {
    const CommandKind kind = commands_[slot].command.kind;
    const bool is_void =
        commands_[slot].endpoint() == endpoint &&
        (waits_in_the_nic(kind) || kind == CommandKind::cancel || kind == CommandKind::close_endpoint ||
         kind == CommandKind::memory_region || kind == CommandKind::close_memory_region);
    if (is_void) commands_.release(slot);
    return is_void;
  });
  close_endpoint(endpoint);
}

void Translator::abandon(Rank& rank) {
  drain(rank);
  std::erase_if(asked_work_, [&](const AskedWork& work) { return wire::address_rank(work.endpoint) == rank.id.value; });
  const bool was_idle = rank.commands.empty();
  for (std::uint32_t endpoint = 0; endpoint < wire::endpoint_count_max; ++endpoint) {
    if (!rank.endpoints_open[endpoint]) continue;
    const std::uint32_t slot = commands_.allocate();
    OpenCommand& open = commands_[slot];
    open.rank = rank.id;
    open.tenancy = rank.tenancy;
    open.command.kind = CommandKind::close_endpoint;
    open.command.endpoint = endpoint;
    open.command.at_ps = rank.page->clock_ps.load();
    rank.commands.push_back(slot);
  }
  if (was_idle && !rank.commands.empty()) schedule_head(rank);
}

}  // namespace dryfly
