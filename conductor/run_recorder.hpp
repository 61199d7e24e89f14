// The recording of a run, for `dryfly run --trace` and `dryfly report`: every delivered message, and what each link
// carried over time (core/record/link_record.hpp). Python makes the user's files of it
// (python/dryfly/result/capture.py).
//
// In the folder: messages.bin and waits.bin, one record after the other in the byte order of the machine; links.bin,
// for each link its steps, as LinkRecord has them; recording.json, which names the links and says where their steps
// begin; counters.bin, what the NICs have counted in each step (CounterSeries).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "conductor/counter_series.hpp"
#include "core/record/link_record.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

struct MessageRecord {
  std::uint64_t called_ps = 0;     // the sender's clock at the call
  std::uint64_t delivered_ps = 0;  // its last byte is in place at the target
  std::uint64_t bytes = 0;
  std::uint32_t source_rank = 0;
  std::uint32_t target_rank = 0;
  std::uint8_t protocol = 0;
  std::uint8_t switch_hops = 0;
  std::uint8_t on_node = 0;
  std::uint8_t reserved[5] = {};
};
static_assert(sizeof(MessageRecord) == 40);

// A rank waited for the network, inside an MPI call.
struct WaitRecord {
  std::uint64_t from_ps = 0;
  std::uint64_t to_ps = 0;
  std::uint64_t rank = 0;
};
static_assert(sizeof(WaitRecord) == 24);

class RunRecorder final : public NetworkObserver {
 public:
  RunRecorder(const std::string& folder, const Dragonfly& topology, const CounterSources& counters, Instant start);

  void carried(const CarriedPiece& piece) override {
    links_.carried(piece);
    counters_.frames().carried(piece);
  }
  CounterSeries& counters() { return counters_; }
  void message(const MessageRecord& record) {
    messages_.write(reinterpret_cast<const char*>(&record), sizeof record);
    ++message_count_;
  }
  void wait(const WaitRecord& record) { waits_.write(reinterpret_cast<const char*>(&record), sizeof record); }
  // Writes what is left. False, and no files, when the disk is full.
  bool finish();

 private:
  std::string describe_links() const;

  std::string folder_;
  const Dragonfly& topology_;
  Instant start_;
  LinkRecord links_;
  CounterSeries counters_;
  std::ofstream messages_;
  std::ofstream waits_;
  std::uint64_t message_count_ = 0;
};

}  // namespace dryfly
