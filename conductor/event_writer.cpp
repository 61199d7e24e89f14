#include "conductor/event_writer.hpp"

#include "conductor/due.hpp"

namespace dryfly {

PendingEvent EventWriter::answer_to(const OpenCommand& open, wire::EventKind kind) {
  PendingEvent pending;
  pending.event = {};
  pending.event.kind = kind;
  pending.event.endpoint = open.command.endpoint;
  pending.event.context = open.command.context;
  pending.tenancy = open.tenancy;
  return pending;
}

PendingEvent EventWriter::news_for(const Rank& rank, EndpointId endpoint, wire::EventKind kind) {
  DRYFLY_CHECK(wire::address_rank(endpoint.value) == rank.id.value);
  PendingEvent pending;
  pending.event = {};
  pending.event.kind = kind;
  pending.event.endpoint = wire::address_endpoint(endpoint.value);
  pending.tenancy = rank.process.tenancy;
  return pending;
}

void EventWriter::keep(RankId rank, PendingEvent&& pending) {
  const Instant due = Instant{pending.event.at_ps - distances_.least().completion.ps};
  kept_[rank.value].push_back(std::move(pending));
  ++events_scheduled_;
  engine_.schedule(due, key_of(Due::news, rank));
}

void EventWriter::tell(RankId rank) {
  ++events_handled_;
  std::deque<PendingEvent>& kept = kept_.at(rank.value);
  PendingEvent oldest = std::move(kept.front());
  kept.pop_front();
  emit(rank, std::move(oldest));
}

}  // namespace dryfly
