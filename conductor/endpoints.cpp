#include "conductor/endpoints.hpp"

#include <cstring>
#include <map>
#include <utility>

namespace dryfly {

namespace {

using wire::CommandKind;
namespace endpoint_flag = wire::endpoint_flag;

bool waits_in_the_nic(CommandKind kind) {
  return kind == CommandKind::receive || kind == CommandKind::tagged_receive || kind == CommandKind::receive_claimed ||
         kind == CommandKind::peek || kind == CommandKind::tagged_peek;
}

bool is_of_its_life(CommandKind kind) {
  return waits_in_the_nic(kind) || kind == CommandKind::cancel || kind == CommandKind::close_endpoint ||
         kind == CommandKind::memory_region || kind == CommandKind::close_memory_region;
}

RankId rank_of(EndpointId endpoint) { return RankId{wire::address_rank(endpoint.value)}; }

EndpointSettings settings_from(const wire::EndpointSettings& asked) {
  EndpointSettings settings;
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
  settings.preempt_on_pool = (asked.flags & endpoint_flag::preempt_on_pool) != 0;
  settings.preempt_on_posted = (asked.flags & endpoint_flag::preempt_on_posted) != 0;
  settings.preempt_on_unexpected = (asked.flags & endpoint_flag::preempt_on_unexpected) != 0;
  settings.preempt_on_overflow = (asked.flags & endpoint_flag::preempt_on_overflow) != 0;
  settings.in_memory = (asked.flags & endpoint_flag::in_memory) != 0;
  settings.lossless = (asked.flags & endpoint_flag::lossless) != 0;
  settings.notifies_done = (asked.flags & endpoint_flag::notifies_done) != 0;
  settings.writes_commands = (asked.flags & endpoint_flag::commands_fetched) == 0;
  settings.network = asked.network;
  settings.software_class = static_cast<TrafficClass>(asked.software_class);
  settings.software_gets = asked.software_gets;
  settings.control_slots = asked.control_slots;
  return settings;
}

}  // namespace

Endpoints::Endpoints(Nics& nics, const Dragonfly& topology, std::vector<Rank>& ranks, const EndpointParts& parts,
                     Places& places, bool served)
    : nics_(nics),
      topology_(topology),
      ranks_(ranks),
      parts_(parts),
      places_(places),
      served_(served),
      open_(ranks.size() * wire::endpoint_count_max),
      nic_of_(ranks.size() * wire::endpoint_count_max),
      known_(ranks.size() * wire::endpoint_count_max) {}

void Endpoints::open(const OpenCommand& open) {
  const EndpointId endpoint = open.endpoint();
  DRYFLY_CHECK(!is_open(endpoint));
  Rank& rank = ranks_[open.rank.value];
  const std::uint32_t nic = open.command.nic;
  const EndpointSettings settings = settings_of(open);
  parts_.distances.open(endpoint, settings.in_memory);
  places_.take(rank, rank.page->place);
  nics_.open_endpoint(endpoint, topology_.nic_of(rank.node, nic), rank.node, settings, places_.memory_place(rank, nic));
  nic_of_[endpoint.value] = nic;
  rank.seat.nics |= std::uint64_t{1} << nic;
  known_[endpoint.value] = true;
  open_[endpoint.value] = true;
  if (open.command.endpoint == 0) rank.nic_index = nic;
}

// The driver gives each process's portals to its matching engines in turn, and each process another one first.
EndpointSettings Endpoints::settings_of(const OpenCommand& open) {
  constexpr std::uint32_t engines = 4;
  EndpointSettings settings;
  if ((open.command.flags & wire::command_flag::payload_inline) != 0) {
    wire::EndpointSettings asked{};
    std::memcpy(&asked, parts_.commands.inline_bytes(open), sizeof asked);
    settings = settings_from(asked);
    if ((asked.flags & endpoint_flag::fences) != 0) parts_.queue.open_fences(open.endpoint());
  }
  settings.engine = (place_on_nic(open.rank) + open.command.endpoint) % engines;
  return settings;
}

std::uint32_t Endpoints::place_on_nic(RankId rank) {
  if (places_on_nic_.empty()) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;
    for (const Rank& each : ranks_) places_on_nic_.push_back(counts[{each.node.value, each.nic_index}]++);
  }
  return places_on_nic_[rank.value];
}

void Endpoints::void_queued(EndpointId endpoint) {
  parts_.queue.release_if(rank_of(endpoint), [&](const OpenCommand& open) {
    return open.endpoint() == endpoint && is_of_its_life(open.command.kind);
  });
}

void Endpoints::move(const OpenCommand& open) {
  wire::NodePlace place{};
  std::memcpy(&place, parts_.commands.inline_bytes(open), sizeof place);
  Rank& rank = ranks_[open.rank.value];
  places_.take(rank, place);
  places_.settle(rank.node, open.command.at_ps);
  for (const Rank& each : ranks_) {
    if (each.node == rank.node) move_all(each);
  }
}

void Endpoints::settle_all(std::uint64_t from_ps) {
  places_.settle_all(from_ps);
  std::ranges::for_each(ranks_, [this](const Rank& rank) { move_all(rank); });
}

void Endpoints::move_all(const Rank& rank) {
  for (std::uint32_t index = 0; index < wire::endpoint_count_max; ++index) {
    const EndpointId endpoint{wire::make_address(rank.id.value, index)};
    if (is_open(endpoint)) nics_.move_endpoint(endpoint, places_.memory_place(rank, nic_of_[endpoint.value]));
  }
}

void Endpoints::close(EndpointId endpoint) {
  DRYFLY_CHECK(is_open(endpoint));
  open_[endpoint.value] = false;
  parts_.reductions.leave_all(endpoint);
  nics_.close_endpoint(endpoint);
  parts_.regions.close_all(endpoint);
  if (served_) forget_receives(endpoint);
}

// The NIC forgets posted receives and claims without a word, so that their records would stay for ever.
void Endpoints::forget_receives(EndpointId endpoint) {
  OpenCommands& commands = parts_.commands;
  const RankId rank = rank_of(endpoint);
  for (std::uint32_t slot = 0; slot < commands.size(); ++slot) {
    const OpenCommand& open = commands[slot];
    const bool of_it = waits_in_the_nic(open.command.kind) && open.endpoint() == endpoint;
    if (of_it && !parts_.queue.contains(rank, slot)) commands.release(slot);
  }
  parts_.claims.forget(endpoint);
}

}  // namespace dryfly
