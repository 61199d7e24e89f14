// Reductions in the fabric, between the ranks and the NICs: who joins which collective group, what its members
// contribute, and what each of them gets. The groups and their trees are kept by CollectiveGroups; the NICs say when.
#pragma once

#include <cstdint>

#include "conductor/collective_groups.hpp"
#include "conductor/event_writer.hpp"
#include "conductor/open_command.hpp"
#include "conductor/tally.hpp"
#include "core/nic/nic.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

class Reductions {
 public:
  // `software_step`: what software takes for one packet of a group that is being formed, and its way to the NIC and
  // back.
  Reductions(Nics& nics, const Dragonfly& topology, OpenCommands& commands, EventWriter& events, Tally& tally,
             Duration software_step)
      : nics_(nics),
        commands_(commands),
        events_(events),
        tally_(tally),
        software_step_(software_step),
        groups_(topology) {}

  // Commands. Each takes the slot: it is released here, or when the NICs have answered. The last two say what is wrong
  // with the command, or null; one with a fault is left to the caller.
  void join(std::uint32_t slot);
  const char* contribute(std::uint32_t slot);
  const char* leave(std::uint32_t slot);
  // An end-point closes, and leaves every group.
  void leave_all(EndpointId endpoint);

  // What the NICs report.
  void joined(Token join, std::uint32_t member, int error);
  void reduced(Token part, int error);

 private:
  void begin(Token join);
  void leave(std::uint64_t key, std::uint32_t member);
  void attach_result(PendingEvent& pending, CollectiveGroups::Group& group, CollectiveGroups::Reduction& reduction,
                     std::uint64_t bytes);

  Nics& nics_;
  OpenCommands& commands_;
  EventWriter& events_;
  Tally& tally_;
  Duration software_step_;
  CollectiveGroups groups_;
};

}  // namespace dryfly
