#include "conductor/translator.hpp"

namespace dryfly {

namespace {

// For one packet of a collective group that is being formed: a send and a completion, and the way to the NIC and back.
Duration software_step(const wire::HostCosts& costs, const HostLatencies& latencies) {
  return Duration{costs.send_ps + costs.completion_ps} + latencies.command + latencies.completion;
}

}  // namespace

Translator::Translator(Engine& engine, Nics& nics, const Dragonfly& topology, Segment& segment,
                       std::vector<Rank>& ranks, EventOutlet& outlet, TroubleOutlet& trouble, Distances& distances,
                       Places& places)
    : tally_(engine, commands_, ranks.size()),
      events_(engine, outlet, ranks.size(), distances),
      queue_(engine, commands_, ranks.size(), distances),
      triggers_(engine, commands_, segment.header().service.triggered_operations),
      claims_(commands_),
      payloads_(segment, ranks, commands_),
      news_(engine, outlet, payloads_, distances),
      regions_(ranks, payloads_, events_, outlet, triggers_, news_),
      work_(nics, ranks, events_),
      reductions_(nics, topology, commands_, events_, tally_,
                  software_step(segment.header().costs, distances.to_nic())),
      endpoints_(nics, topology, ranks, {commands_, queue_, claims_, regions_, reductions_, distances}, places,
                 segment.header().served != 0),
      host_({commands_, queue_, claims_, payloads_, regions_, reductions_, work_, events_, trouble, tally_, peeks_,
             triggers_}),
      issuer_(engine, nics,
              {commands_, queue_, endpoints_, claims_, regions_, reductions_, work_, events_, triggers_, news_,
               payloads_, host_, trouble, tally_}),
      reader_(segment, topology, {commands_, queue_, endpoints_, issuer_, work_, trouble, peeks_}) {}

}  // namespace dryfly
