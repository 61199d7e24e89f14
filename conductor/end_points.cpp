// How the provider wants its end-points, and the work that their NICs ask of it: both are handed through.
#include <cstring>
#include <map>
#include <utility>

#include "conductor/translator.hpp"

namespace dryfly {

// Takes effect at once, whatever its stamp: a peer may have been told of it and may already send to it.
void Translator::open_endpoint(std::uint32_t slot, const OpenCommand& open) {
  Rank& rank = ranks_[open.rank.value];
  if (rank.endpoints_open[open.command.endpoint]) end_first_life(rank, open.endpoint());
  const std::uint32_t nic = open.command.peer;
  nics_->open_endpoint(open.endpoint(), topology_.nic_of(rank.node, nic), rank.node, settings_of(open),
                       {.socket = rank.socket, .nic_socket = nic < nic_sockets_.size() ? nic_sockets_[nic] : 0});
  known_[open.endpoint().value] = true;
  rank.endpoints_open.set(open.command.endpoint);
  if (open.command.endpoint == 0) rank.nic_index = nic;
  commands_.release(slot);
}

// The driver gives each process's portals to its matching engines in turn, and each process another one first.
EndpointSettings Translator::settings_of(const OpenCommand& open) {
  constexpr std::uint32_t engines = 4;
  EndpointSettings settings;
  settings.engine = (place_on_nic(open.rank) + open.command.endpoint) % engines;
  if ((open.command.flags & wire::command_flag::payload_inline) == 0) return settings;
  wire::EndpointSettings asked{};
  std::memcpy(&asked, commands_.inline_bytes(open), sizeof asked);
  settings.match_mode = static_cast<MatchMode>(asked.match_mode);
  if (asked.eager_max != wire::far_future) settings.eager_max = Bytes{asked.eager_max};
  if (asked.rendezvous_head != wire::far_future) settings.rendezvous_head = Bytes{asked.rendezvous_head};
  settings.overflow_buffer = Bytes{asked.overflow_buffer};
  settings.overflow_buffers = asked.overflow_buffers;
  settings.request_buffer = Bytes{asked.request_buffer};
  settings.request_buffers = asked.request_buffers;
  settings.event_slots = asked.event_slots;
  settings.event_batch = asked.event_batch;
  settings.receive_size = asked.receive_size;
  settings.preempt_on_pool = (asked.flags & wire::endpoint_flag::preempt_on_pool) != 0;
  settings.preempt_on_posted = (asked.flags & wire::endpoint_flag::preempt_on_posted) != 0;
  if ((asked.flags & wire::endpoint_flag::fences) != 0) fences_.open(open.endpoint());
  settings.preempt_on_unexpected = (asked.flags & wire::endpoint_flag::preempt_on_unexpected) != 0;
  settings.preempt_on_overflow = (asked.flags & wire::endpoint_flag::preempt_on_overflow) != 0;
  settings.lossless = (asked.flags & wire::endpoint_flag::lossless) != 0;
  settings.notifies_done = (asked.flags & wire::endpoint_flag::notifies_done) != 0;
  settings.writes_commands = (asked.flags & wire::endpoint_flag::commands_fetched) == 0;
  settings.network = asked.network;
  settings.software_class = static_cast<TrafficClass>(asked.software_class);
  settings.software_gets = asked.software_gets;
  settings.control_slots = asked.control_slots;
  return settings;
}

// What goes out and has to wait for a fence, or behind one.
bool Translator::held_back(std::uint32_t slot) {
  if (!fences_.in_use()) return false;
  const OpenCommand& open = commands_[slot];
  switch (open.command.kind) {
    case wire::CommandKind::send:
    case wire::CommandKind::tagged_send:
    case wire::CommandKind::write:
    case wire::CommandKind::read:
    case wire::CommandKind::atomic:
    case wire::CommandKind::fetch_atomic:
    case wire::CommandKind::compare_atomic:
      return !fences_.starts(open.endpoint(), slot, (open.command.flags & wire::command_flag::fence) != 0);
    default:
      return false;
  }
}

// What was held back goes on as an event of its own, since the NIC that reports this is in the middle of something.
void Translator::finished(EndpointId source) {
  if (!fences_.in_use()) return;
  const std::vector<std::uint32_t> again = fences_.finished(source);
  if (again.empty()) return;
  Rank& rank = rank_of(source);
  rank.commands.insert(rank.commands.begin(), again.begin(), again.end());
  schedule_head(rank);
}

std::uint32_t Translator::place_on_nic(RankId rank) {
  if (places_on_nic_.empty()) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;
    for (const Rank& each : ranks_) places_on_nic_.push_back(counts[{each.node.value, each.nic_index}]++);
  }
  return places_on_nic_[rank.value];
}

void Translator::needs_processor(EndpointId at, const Work& work) {
  PendingEvent pending;
  pending.event = {};
  pending.event.kind = wire::EventKind::work;
  pending.event.endpoint = wire::address_endpoint(at.value);
  pending.event.tag = static_cast<std::uint64_t>(work.kind);
  pending.event.data = work.item;
  pending.event.aux = work.life;
  pending.event.length = work.count;
  const wire::Event& event = pending.event;
  asked_work_.insert({at.value, event.tag, event.data, event.aux, event.length});
  pending.tenancy = rank_of(at).tenancy;
  emit(rank_of(at).id, std::move(pending));
}

// The NIC takes the item for one of its own, so it has to be one that it has named.
void Translator::execute_work_done(std::uint32_t slot, const OpenCommand& open) {
  const wire::Command& command = open.command;
  const auto asked = asked_work_.find({open.endpoint().value, command.tag, command.data, command.aux, command.length});
  if (asked == asked_work_.end()) return refuse_command(slot, "work");
  asked_work_.erase(asked);
  nics_->worked(open.endpoint(), {.kind = static_cast<WorkKind>(command.tag),
                                  .item = static_cast<std::uint32_t>(command.data),
                                  .life = static_cast<std::uint32_t>(command.aux),
                                  .count = static_cast<std::uint32_t>(command.length)});
  commands_.release(slot);
}

}  // namespace dryfly
