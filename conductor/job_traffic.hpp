// What of the simulation is the job's. Traffic to and from storage groups beside it (core/storage) never comes to rest
// by itself, so what is otherwise learned from an empty event queue, that a job in which every rank waits has nothing
// under way, is learned by counting what is the job's: transfers, and events of NICs and commands.
#pragma once

#include <cstdint>
#include <vector>

#include "conductor/clock.hpp"
#include "conductor/rank.hpp"
#include "conductor/translator.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/nic.hpp"
#include "core/storage/storage_traffic.hpp"

namespace dryfly {

class JobTraffic {
 public:
  // `storage`: null where the job has the network for itself.
  JobTraffic(Engine& engine, const Nics& nics, const Translator& translator, storage::StorageTraffic* storage)
      : engine_(engine), nics_(nics), translator_(translator), storage_(storage) {}

  bool nothing_under_way() const;
  // Of what is under way there is nothing but peeks, of which each is a command on its way to its NIC, and nothing that
  // would end without the ranks' doing. Looks at everything, so it is not for often.
  bool only_peeks_under_way() const;
  const Peeks& peeks() const { return translator_.peeks(); }
  const Triggers& triggers() const { return translator_.triggers(); }
  // Grows with everything that happens for the job.
  std::uint64_t events() const;
  bool has_company() const { return storage_ != nullptr; }
  // How far the engine may run when every rank waits for an event: with other traffic, no further than the job needs,
  // and to an instant that does not depend on when this was asked.
  Instant limit_of_waiting(const Clock& clock, const std::vector<Rank>& ranks);
  // Where the network is to stand when all ranks have come to their end: it may have run as far before, and no further.
  static Instant end_of(const Clock& clock, const std::vector<Rank>& ranks);
  // The engine's run to that limit is over.
  void stopped() {
    if (storage_ != nullptr) storage_->network().stop_engine_when_idle(false);
  }

 private:
  Engine& engine_;
  const Nics& nics_;
  const Translator& translator_;
  storage::StorageTraffic* storage_;
};

}  // namespace dryfly
