#include "conductor/command_queue.hpp"

#include "conductor/peeks.hpp"

namespace dryfly {

namespace {

constexpr Due due_of(Line line) { return line == Line::to_nic ? Due::at_nic : Due::at_memory; }

bool goes_out(wire::CommandKind kind) {
  return kind == wire::CommandKind::send || kind == wire::CommandKind::tagged_send || is_access(kind);
}

}  // namespace

bool CommandQueue::contains(RankId rank, std::uint32_t slot) const {
  return std::ranges::any_of(queues_[rank.value],
                             [slot](const Queue& line) { return std::ranges::find(line, slot) != line.end(); });
}

bool CommandQueue::holds_only_peeks() const {
  const auto is_peek = [this](std::uint32_t slot) { return Peeks::is_peek(commands_[slot].command.kind); };
  return std::ranges::all_of(queues_, [&](const std::array<Queue, line_count>& lines) {
    return std::ranges::all_of(lines, [&](const Queue& line) { return std::ranges::all_of(line, is_peek); });
  });
}

void CommandQueue::schedule_oldest(RankId rank, Line line) {
  ++events_scheduled_;
  engine_.schedule(std::max(arrival(queue(rank, line).front()), engine_.now()), key_of(due_of(line), rank));
}

bool CommandQueue::waits_for_fence(std::uint32_t slot) {
  const OpenCommand& open = commands_[slot];
  if (!goes_out(open.command.kind)) return false;
  return !fences_.starts(open.endpoint(), slot, (open.command.flags & wire::command_flag::fence) != 0);
}

void CommandQueue::go_on(EndpointId source) {
  const std::vector<std::uint32_t> again = fences_.finished(source);
  if (again.empty()) return;
  const RankId rank{wire::address_rank(source.value)};
  const Line line = line_of(again.front());
  Queue& queue = this->queue(rank, line);
  queue.insert(queue.begin(), again.begin(), again.end());
  schedule_oldest(rank, line);
}

}  // namespace dryfly
