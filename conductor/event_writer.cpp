#include "conductor/event_writer.hpp"

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

}  // namespace dryfly
