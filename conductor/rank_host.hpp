// The ranks as their NICs' host: what a NIC reports becomes an event for the rank, and ends the open command that it
// answers.
#pragma once

#include <cstdint>

#include "conductor/claims.hpp"
#include "conductor/command_queue.hpp"
#include "conductor/event_writer.hpp"
#include "conductor/memory_regions.hpp"
#include "conductor/open_command.hpp"
#include "conductor/payloads.hpp"
#include "conductor/peeks.hpp"
#include "conductor/processor_work.hpp"
#include "conductor/reductions.hpp"
#include "conductor/tally.hpp"
#include "conductor/triggers.hpp"
#include "core/nic/nic.hpp"

namespace dryfly {

// What it needs of the others.
struct HostParts {
  OpenCommands& commands;
  CommandQueue& queue;
  Claims& claims;
  Payloads& payloads;
  MemoryRegions& regions;
  Reductions& reductions;
  ProcessorWork& work;
  EventWriter& events;
  TroubleOutlet& trouble;
  Tally& tally;
  Peeks& peeks;
  Triggers& triggers;
};

class RankHost final : public Host {
 public:
  explicit RankHost(const HostParts& parts) : parts_(parts) {}

  void sent(EndpointId source, Token send) override;
  void received(const Received& received) override;
  void send_failed(EndpointId source, Token send, int error) override;
  void receive_failed(const Received& received, int error) override;
  void peeked(const Peeked& peeked) override;
  void cancelled(EndpointId at, Token receive) override;
  void dropped(EndpointId source, Token send) override;
  int apply(EndpointId, Token access) override { return parts_.regions.apply(answered(access)); }
  void rma_done(EndpointId source, Token access, int error) override;
  void head_to_copy(const HeadToCopy& head) override;
  DmaPages buffer_pages(EndpointId, Token command) const override;
  DmaPages target_pages(EndpointId, Token access) const override;
  void needs_processor(EndpointId at, const Work& work) override { parts_.work.ask(at, work); }
  void rma_delivered(const RmaCommand& access, bool on_node, std::uint32_t switch_hops) override;
  void joined(EndpointId, Token join, std::uint32_t member, int error) override {
    parts_.reductions.joined(join, member, error);
  }
  void reduced(EndpointId, Token part, int error) override { parts_.reductions.reduced(part, error); }

 private:
  OpenCommand& answered(Token token);
  void release_if_over(Token token, const OpenCommand& send);

  HostParts parts_;
};

}  // namespace dryfly
