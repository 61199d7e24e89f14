// Whether the run is recorded, and who is told of what is recorded: while virtual time runs, and not before or after.
#pragma once

#include <memory>
#include <string>

#include "conductor/clock.hpp"
#include "conductor/counter_sources.hpp"
#include "conductor/gates.hpp"
#include "conductor/run_recorder.hpp"
#include "conductor/tally.hpp"
#include "core/contract/network.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

class Recording {
 public:
  // `folder`: for the recording; empty: there is none.
  Recording(std::string folder, const Dragonfly& topology, Network& network, const CounterSources& counters,
            Clock& clock, Tally& tally, Gates& gates);

  void start(Instant at);
  // What went wrong with the files, in a sentence; empty if nothing did.
  std::string finish(Instant end);

 private:
  void tell(RunRecorder* recorder);

  std::string folder_;
  const Dragonfly& topology_;
  Network& network_;
  CounterSources counters_;
  Clock& clock_;
  Tally& tally_;
  Gates& gates_;
  std::unique_ptr<RunRecorder> recorder_;
};

}  // namespace dryfly
