#include "core/nic/pauses.hpp"

namespace dryfly::nic {

void Pauses::pause(std::uint32_t index) {
  Message& message = messages_[index];
  message.state.move_to(MessageState::paused);
  ++totals_.matching.messages_paused;
  const NicId nic = inboxes_.inbox(message.command.target).nic;
  counters_.pause(nic, message.command.traffic_class);
  paused_[{nic.value, message.command.traffic_class}].push_back(index);
  inboxes_.ask_processor(message.command.target);
}

bool Pauses::waits_in_line(std::uint32_t index) {
  const Message& message = messages_[index];
  if (paused_.empty() || message.by_memory) return false;
  const auto line = paused_.find({inboxes_.inbox(message.command.target).nic.value, message.command.traffic_class});
  if (line == paused_.end()) return false;
  pause(index);
  return true;
}

std::vector<std::uint32_t> Pauses::end_of(NicId nic) {
  constexpr TrafficClass first{};
  std::vector<std::uint32_t> again;
  for (auto line = paused_.lower_bound({nic.value, first}); line != paused_.end() && line->first.first == nic.value;) {
    counters_.resume(nic, line->first.second);
    again.insert(again.end(), line->second.begin(), line->second.end());
    line = paused_.erase(line);
  }
  return again;
}

}  // namespace dryfly::nic
