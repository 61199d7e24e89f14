// Commands out of the ranks' rings.
#include <algorithm>
#include <cstring>

#include "conductor/translator.hpp"

namespace dryfly {

using wire::CommandKind;
namespace command_flag = wire::command_flag;

void Translator::drain(Rank& rank) {
  if (rank.cut_off) return;
  const std::uint32_t ring = segment_.header().command_ring_bytes;
  const std::uint64_t head = rank.page->command_head.load(std::memory_order_acquire);
  if (rank.command_tail == head) return;
  if (head - rank.command_tail > ring) return outlet_.damaged(rank.id, "place");
  const bool was_idle = rank.commands.empty();
  while (rank.command_tail != head) {
    const char* record = rank.command_ring + rank.command_tail % ring;
    const std::uint64_t to_end = ring - rank.command_tail % ring;
    const auto& command = *reinterpret_cast<const wire::Command*>(record);
    if (command.record_bytes == wire::wrap_record && to_end < head - rank.command_tail) {
      rank.command_tail += to_end;
      continue;
    }
    const std::uint32_t slot = commands_.allocate();
    OpenCommand& open = commands_[slot];
    std::memcpy(&open.command, &command, sizeof command);
    open.rank = rank.id;
    open.tenancy = rank.tenancy;
    const std::uint64_t room = std::min(to_end, head - rank.command_tail);
    if (const char* fault = fault_of(rank, open.command, room, record + wire::command_bytes)) {
      refuse_command(slot, fault);
      break;
    }
    if ((open.command.flags & command_flag::payload_inline) != 0 && open.command.length > 0) {
      std::memcpy(commands_.attach_inline(open), record + wire::command_bytes,
                  std::min<std::uint64_t>(open.command.length, wire::inline_bytes_max));
    }
    rank.command_tail += open.command.record_bytes;
    if (open.command.kind == CommandKind::open_endpoint) {
      open_endpoint(slot, open);
    } else {
      rank.commands.push_back(slot);
    }
  }
  rank.page->command_tail.store(rank.command_tail, std::memory_order_release);
  if (was_idle && !rank.commands.empty()) schedule_head(rank);
}

const char* Translator::fault_of(const Rank& rank, const wire::Command& command, std::uint64_t room,
                                 const char* payload) const {
  if (const char* fault = scrutiny_.fault_of(command, rank, room, payload)) return fault;
  const bool opens = command.kind == CommandKind::open_endpoint;
  return opens || reachable(wire::make_address(rank.id.value, command.endpoint)) ? nullptr : "end-point";
}

void Translator::refuse_command(std::uint32_t slot, const char* reason) {
  const RankId rank = commands_[slot].rank;
  commands_.release(slot);
  outlet_.damaged(rank, reason);
}

}  // namespace dryfly
