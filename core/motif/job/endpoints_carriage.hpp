// The cheapest level of `dryfly predict`, `latency`: NICs at both ends and a way between them whose length is right and
// which nobody else uses. Loads wait for the link of their target's NIC.
//
// Models docs/model/links.md and docs/model/switch.md without load: flights, the latency of each switch on a minimal
// way, serialisation at the rate of one link. Leaves out everything that switches share. Of faults it takes those of
// links of NICs.
#pragma once

#include <memory>

#include "core/motif/job/backlog.hpp"
#include "core/motif/job/carriage.hpp"
#include "core/motif/job/trouble.hpp"
#include "core/motif/job/wires.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::motif {

class EndpointsCarriage final : public Carriage {
 public:
  EndpointsCarriage(const Spec& spec, const Dragonfly& topology, Bytes part = part_bytes);

  Bytes part() const override { return part_; }
  std::optional<Carried> carry(const Load& load) override;

 private:
  template <class Toll>
  Carried pass(const Load& load, Toll&& toll);

  Wires wires_;
  const Bytes part_;
  const Dragonfly& topology_;
  struct Queue {
    Backlog all;
    Backlog packets;  // loads of a single packet, which do not wait for longer ones
  };
  LargeVector<Queue> queues_;         // of the link to each NIC
  std::unique_ptr<Trouble> trouble_;  // with faults only
};

}  // namespace dryfly::motif
