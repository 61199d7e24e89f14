#include "conductor/recording.hpp"

#include <utility>

namespace dryfly {

Recording::Recording(std::string folder, const Dragonfly& topology, Network& network, const CounterSources& counters,
                     Clock& clock, Tally& tally, Gates& gates)
    : folder_(std::move(folder)),
      topology_(topology),
      network_(network),
      counters_(counters),
      clock_(clock),
      tally_(tally),
      gates_(gates) {}

void Recording::start(Instant at) {
  if (folder_.empty()) return;
  recorder_ = std::make_unique<RunRecorder>(folder_, topology_, counters_, at);
  tell(recorder_.get());
}

std::string Recording::finish(Instant end) {
  if (!recorder_) return {};
  tell(nullptr);
  recorder_->counters().finish(end);
  const bool is_whole = recorder_->finish();
  recorder_.reset();
  return is_whole ? std::string() : "the recording of the network cannot be written to " + folder_;
}

void Recording::tell(RunRecorder* recorder) {
  network_.observe(recorder);
  clock_.watch_steps(recorder != nullptr ? &recorder->counters() : nullptr);
  tally_.tell(recorder);
  gates_.tell(recorder);
}

}  // namespace dryfly
