#include "conductor/processor_work.hpp"

#include <utility>

namespace dryfly {

void ProcessorWork::ask(EndpointId at, const Work& work) {
  const Rank& rank = ranks_[wire::address_rank(at.value)];
  PendingEvent pending = EventWriter::news_for(rank, at, wire::EventKind::work);
  pending.event.work_kind = static_cast<std::uint64_t>(work.kind);
  pending.event.work_item = work.item;
  pending.event.work_generation = work.life;
  pending.event.work_count = work.count;
  asked_.insert({at.value, pending.event.work_kind, pending.event.work_item, pending.event.work_generation,
                 pending.event.work_count});
  events_.write(rank.id, std::move(pending));
}

bool ProcessorWork::done(const OpenCommand& open) {
  const wire::Command& command = open.command;
  const auto asked = asked_.find(
      {open.endpoint().value, command.work_kind, command.work_item, command.work_generation, command.work_count});
  if (asked == asked_.end()) return false;
  asked_.erase(asked);
  nics_.worked(open.endpoint(), {.kind = static_cast<WorkKind>(command.work_kind),
                                 .item = static_cast<std::uint32_t>(command.work_item),
                                 .life = static_cast<std::uint32_t>(command.work_generation),
                                 .count = static_cast<std::uint32_t>(command.work_count)});
  return true;
}

void ProcessorWork::forget(RankId rank) {
  std::erase_if(asked_, [&](const Asked& asked) { return wire::address_rank(asked.endpoint) == rank.value; });
}

}  // namespace dryfly
