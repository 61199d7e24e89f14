// What the NICs have brought to the ranks: counted, entered in the run's fingerprint, and told to whoever records the
// run. Instants in the fingerprint count from the start.
#pragma once

#include <cstdint>

#include "conductor/open_command.hpp"
#include "conductor/run_recorder.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/nic.hpp"
#include "core/record/fingerprint.hpp"

namespace dryfly {

// Messages received, and accesses that have reached their target.
struct ReceivedTotals {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

class Tally {
 public:
  Tally(const Engine& engine, OpenCommands& commands) : engine_(engine), commands_(commands) {}

  // From here on what comes is counted; before that, only how often something came.
  void start(Instant start);
  void stop() { counting_ = false; }
  // Whom to tell of each message and access too; nobody: null.
  void tell(RunRecorder* recorder) { recorder_ = recorder; }

  void received(const Received& received);
  void accessed(const RmaCommand& access, bool on_node, std::uint32_t switch_hops);
  // The result of a reduction, from its tree's root.
  void reduced(EndpointId root, RankId rank, Bytes size);

  const Fingerprint& fingerprint() const { return fingerprint_; }
  const ReceivedTotals& totals() const { return totals_; }
  std::uint64_t before_start() const { return before_start_; }

 private:
  void count(EndpointId source, EndpointId target, Bytes size);
  void tell_recorder(EndpointId source, EndpointId target, Token token, Protocol protocol, bool on_node,
                     std::uint32_t switch_hops);
  void add(RankId source, RankId target, Bytes size);

  const Engine& engine_;
  OpenCommands& commands_;
  Instant start_{};
  bool counting_ = false;
  Fingerprint fingerprint_;
  ReceivedTotals totals_;
  std::uint64_t before_start_ = 0;
  RunRecorder* recorder_ = nullptr;
};

}  // namespace dryfly
