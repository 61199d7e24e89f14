#include "conductor/command_queue.hpp"

#include "conductor/peeks.hpp"

namespace dryfly {

namespace {

constexpr std::uint64_t host_class = static_cast<std::uint64_t>(ComponentClass::host) << component_class_shift;

bool goes_out(wire::CommandKind kind) {
  switch (kind) {
    case wire::CommandKind::send:
    case wire::CommandKind::tagged_send:
    case wire::CommandKind::write:
    case wire::CommandKind::read:
    case wire::CommandKind::atomic:
    case wire::CommandKind::fetch_atomic:
    case wire::CommandKind::compare_atomic:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool CommandQueue::contains(RankId rank, std::uint32_t slot) const {
  const std::deque<std::uint32_t>& queue = queues_[rank.value];
  return std::find(queue.begin(), queue.end(), slot) != queue.end();
}

bool CommandQueue::holds_only_peeks() const {
  return std::ranges::all_of(queues_, [this](const std::deque<std::uint32_t>& queue) {
    return std::ranges::all_of(queue,
                               [this](std::uint32_t slot) { return Peeks::is_peek(commands_[slot].command.kind); });
  });
}

void CommandQueue::schedule_oldest(RankId rank) {
  DRYFLY_CHECK(!is_empty(rank));
  ++events_scheduled_;
  engine_.schedule(std::max(at_nic(queues_[rank.value].front()), engine_.now()), host_class | rank.value);
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
  std::deque<std::uint32_t>& queue = queues_[rank.value];
  queue.insert(queue.begin(), again.begin(), again.end());
  schedule_oldest(rank);
}

}  // namespace dryfly
