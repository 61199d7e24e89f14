// Gives each command of the ranks to its NIC at the instant at which it gets there.
#pragma once

#include <cstdint>

#include "conductor/claims.hpp"
#include "conductor/command_queue.hpp"
#include "conductor/endpoints.hpp"
#include "conductor/event_writer.hpp"
#include "conductor/memory_regions.hpp"
#include "conductor/open_command.hpp"
#include "conductor/payloads.hpp"
#include "conductor/processor_work.hpp"
#include "conductor/rank_host.hpp"
#include "conductor/reductions.hpp"
#include "conductor/stream_news.hpp"
#include "conductor/triggers.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/nic.hpp"

namespace dryfly {

// What it needs of the others.
struct IssuerParts {
  OpenCommands& commands;
  CommandQueue& queue;
  Endpoints& endpoints;
  Claims& claims;
  MemoryRegions& regions;
  Reductions& reductions;
  ProcessorWork& work;
  EventWriter& events;
  Triggers& triggers;
  StreamNews& news;
  Payloads& payloads;
  RankHost& host;
  TroubleOutlet& trouble;
  Tally& tally;
};

class CommandIssuer final : public Handler {
 public:
  CommandIssuer(Engine& engine, Nics& nics, const IssuerParts& parts);

  void handle(dryfly::Event event) override;
  void prefetch(dryfly::Event event, unsigned stage) const override;
  // Takes effect at once, whatever the command's stamp: a peer may have been told of the end-point and may already send
  // to it.
  void open_endpoint(std::uint32_t slot);
  // The rank has put there what is no command, for this reason.
  void refuse(std::uint32_t slot, const char* reason);

 private:
  void issue(std::uint32_t slot, bool triggered = false);
  void send(std::uint32_t slot);
  void receive(std::uint32_t slot);
  void peek(std::uint32_t slot);
  void cancel(std::uint32_t slot);
  void count(std::uint32_t slot);
  void tell(const OpenCommand& open);
  void cancel_trigger(std::uint32_t slot);
  // What of the rank's has waited for a counter that is there now.
  void issue_triggered(RankId rank);
  void tell_of_entries(RankId rank);
  void access(std::uint32_t slot);
  void close_endpoint(EndpointId endpoint);
  // Null: there is nothing wrong with it.
  void refuse_for(const char* reason, std::uint32_t slot) {
    if (reason != nullptr) refuse(slot, reason);
  }

  Nics& nics_;
  bool has_told_of_entries_ = false;
  IssuerParts parts_;
};

}  // namespace dryfly
