#include "conductor/scrutiny.hpp"

#include <cstring>

#include "conductor/atomics.hpp"
#include "core/contract/network.hpp"
#include "core/nic/portal.hpp"
#include "wire/reduction.hpp"

namespace dryfly {

namespace {

using wire::CommandKind;
namespace command_flag = wire::command_flag;

constexpr std::uint32_t record_bytes_max = wire::command_bytes + wire::inline_bytes_max;
constexpr std::uint64_t last_instant_ps = 1ULL << 63;  // 106 days; what is added to an instant never overflows
constexpr std::uint8_t gpus_max = 16;
constexpr std::uint64_t message_bytes_max = 1ULL << 47;  // the memory that a process can have

bool is_atomic(CommandKind kind) {
  return kind == CommandKind::atomic || kind == CommandKind::fetch_atomic || kind == CommandKind::compare_atomic;
}

bool is_of_group(CommandKind kind) { return kind == CommandKind::join_group || kind == CommandKind::contribute; }

// Of a receive the length says only what there is room for.
bool moves_bytes(CommandKind kind) {
  return kind == CommandKind::send || kind == CommandKind::tagged_send || kind == CommandKind::write ||
         kind == CommandKind::read || is_atomic(kind);
}

}  // namespace

const char* Scrutiny::fault_of(const wire::Command& command, const Rank& rank, std::uint64_t room,
                               const char* payload) const {
  const std::uint32_t bytes = command.record_bytes;
  if (bytes < wire::command_bytes || bytes > record_bytes_max || bytes > room || bytes % wire::record_granule != 0) {
    return "length";
  }
  if (command.kind < CommandKind::open_endpoint || command.kind > CommandKind::watch) return "kind";
  if (command.endpoint >= wire::endpoint_count_max) return "end-point";
  if (command.at_ps > last_instant_ps) return "instant";
  if (command.kind == CommandKind::open_endpoint) return fault_of_opening(command, rank, payload);
  if (command.traffic_class > static_cast<std::uint8_t>(TrafficClass::ethernet)) return "traffic class";
  if (command.gpu > gpus_max) return "GPU";
  if ((command.flags & command_flag::attaches) != 0 && command.attaching_ps > last_instant_ps) return "attaching";
  if (moves_bytes(command.kind) && command.length > message_bytes_max) return "size";
  if (const char* fault = fault_of_payload(command)) return fault;
  if (command.kind == CommandKind::move) {
    const bool is_whole =
        (command.flags & command_flag::payload_inline) != 0 && command.length == sizeof(wire::NodePlace);
    return is_whole ? nullptr : "place";
  }
  if (command.kind == CommandKind::watch && command.length != 4 && command.length != 8) return "length";
  if (is_of_group(command.kind)) return fault_of_group(command, payload);
  return is_atomic(command.kind) ? fault_of_atomic(command) : nullptr;
}

const char* Scrutiny::fault_of_payload(const wire::Command& command) const {
  if ((command.flags & command_flag::payload_inline) != 0 &&
      command.length > command.record_bytes - wire::command_bytes) {
    return "inline payload";
  }
  if ((command.flags & command_flag::payload_arena) != 0) {
    const std::uint64_t first = header_.arena.offset;
    const std::uint64_t end = header_.arena.offset + header_.arena.bytes;
    const std::uint64_t at = command.arena_offset;
    if (at < first || at > end || command.length > end - at || at % wire::arena_granule != 0) return "payload";
  }
  return nullptr;
}

// The conductor itself computes with what the payload says.
const char* Scrutiny::fault_of_atomic(const wire::Command& command) const {
  constexpr std::uint32_t brought = command_flag::payload_inline | command_flag::payload_arena;
  if (command.length == 0 || (command.flags & brought) == 0) return "operands";
  const std::size_t element = atomic_type_size(command.atomic_type);
  if (element == 0) return "type of data";
  const bool compares = command.kind == CommandKind::compare_atomic;
  const std::uint64_t bytes = compares ? command.operand_bytes : command.length;
  if (bytes == 0 || bytes % element != 0 || bytes > command.length) return "operands";
  return compares && command.length - bytes < bytes ? "operands" : nullptr;
}

const char* Scrutiny::fault_of_group(const wire::Command& command, const char* payload) const {
  if ((command.flags & command_flag::payload_inline) == 0) return "group";
  if (command.kind == CommandKind::contribute) {
    wire::Contribution part{};
    if (command.length != sizeof part || command.result_bytes > wire::reduction_bytes_max) return "contribution";
    std::memcpy(&part, payload, sizeof part);
    return part.count == 0 ? "contribution" : nullptr;
  }
  wire::GroupSettings settings{};
  if (command.length < sizeof settings || (command.length - sizeof settings) % sizeof(std::uint32_t) != 0)
    return "group";
  std::memcpy(&settings, payload, sizeof settings);
  return settings.radix < 2 ? "group" : nullptr;
}

const char* Scrutiny::fault_of_opening(const wire::Command& command, const Rank& rank, const char* payload) const {
  if (command.nic >= topology_.nics_per_node(rank.node)) return "NIC";
  if ((command.flags & command_flag::payload_inline) == 0) return nullptr;
  wire::EndpointSettings asked{};
  if (command.length != sizeof asked || command.record_bytes < wire::command_bytes + sizeof asked) return "settings";
  std::memcpy(&asked, payload, sizeof asked);
  return asked.match_mode > static_cast<std::uint32_t>(MatchMode::hybrid) ? "settings" : nullptr;
}

}  // namespace dryfly
