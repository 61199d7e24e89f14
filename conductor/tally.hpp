// What the NICs have brought to the ranks: counted, entered in the run's fingerprint, and told to whoever records the
// run. Instants in the fingerprint count from the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conductor/open_command.hpp"
#include "conductor/run_recorder.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/nic.hpp"
#include "core/record/fingerprint.hpp"

namespace dryfly {

struct MessageTotals {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

class Tally {
 public:
  Tally(const Engine& engine, OpenCommands& commands, std::size_t rank_count)
      : engine_(engine), commands_(commands), sent_(rank_count) {}

  // From here on what comes is counted; before that, only how often something came.
  void start(Instant start);
  void stop() { counting_ = false; }
  // Whom to tell of each message and access too; nobody: null.
  void tell(RunRecorder* recorder) { recorder_ = recorder; }

  // A rank's NIC has a message to send. An access counts when it reaches its target.
  void sent(RankId rank, Bytes size) {
    ++sent_[rank.value].messages;
    sent_[rank.value].bytes += size.count;
  }
  void received(const Received& received);
  void accessed(const RmaCommand& access, bool on_node, std::uint32_t switch_hops);
  // The result of a reduction, from its tree's root.
  void reduced(EndpointId root, RankId rank, Bytes size);

  const Fingerprint& fingerprint() const { return fingerprint_; }
  // Messages received, and accesses that have reached their target.
  const MessageTotals& totals() const { return totals_; }
  // From the beginning, not only from the start.
  const MessageTotals& sent_by(RankId rank) const { return sent_[rank.value]; }
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
  MessageTotals totals_;
  std::vector<MessageTotals> sent_;  // by rank
  std::uint64_t before_start_ = 0;
  RunRecorder* recorder_ = nullptr;
};

}  // namespace dryfly
