#include "conductor/processor_work.hpp"

#include <utility>

namespace dryfly {

void ProcessorWork::ask(EndpointId at, const Work& work) {
  const Rank& rank = ranks_[wire::address_rank(at.value)];
  PendingEvent pending = EventWriter::news_for(rank, at, wire::EventKind::work);
  pending.event.tag = static_cast<std::uint64_t>(work.kind);
  pending.event.data = work.item;
  pending.event.aux = work.life;
  pending.event.length = work.count;
  asked_.insert({at.value, pending.event.tag, pending.event.data, pending.event.aux, pending.event.length});
  events_.write(rank.id, std::move(pending));
}

bool ProcessorWork::done(const OpenCommand& open) {
  const wire::Command& command = open.command;
  const auto asked = asked_.find({open.endpoint().value, command.tag, command.data, command.aux, command.length});
  if (asked == asked_.end()) return false;
  asked_.erase(asked);
  nics_.worked(open.endpoint(), {.kind = static_cast<WorkKind>(command.tag),
                                 .item = static_cast<std::uint32_t>(command.data),
                                 .life = static_cast<std::uint32_t>(command.aux),
                                 .count = static_cast<std::uint32_t>(command.length)});
  return true;
}

void ProcessorWork::forget(RankId rank) {
  std::erase_if(asked_, [&](const Asked& asked) { return wire::address_rank(asked.endpoint) == rank.value; });
}

}  // namespace dryfly
