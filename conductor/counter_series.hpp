// The counters of the job's NICs, and what the ports of switches have carried, over time: what each has counted in each
// of equal steps. At the end of a step everything before it has happened and nothing after it, so that a step does not
// depend on when the conductor looked.
//
// Frames and their bytes are counted here when they have crossed the NIC's link, and not, as in the totals of a run,
// when their transfer was handed to the network: a large one crosses during many steps. What is sent again counts
// again. Left out: that for packets by class, which count with their transfer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conductor/clock.hpp"
#include "conductor/counter_sources.hpp"
#include "core/record/frame_record.hpp"
#include "core/record/step_record.hpp"

namespace dryfly {

class JsonWriter;

// In counters.bin, one behind the other, in the byte order of the machine.
struct CounterStep {
  std::uint32_t step = 0;
  std::uint32_t of = 0;    // NIC, or the port that drives a link
  std::uint32_t what = 0;  // counter; of a link: counter_count frames, counter_count + 1 their bytes
  std::uint32_t reserved = 0;
  std::uint64_t grown = 0;
};
static_assert(sizeof(CounterStep) == 24);

class CounterSeries final : public StepWatcher {
 public:
  CounterSeries(const CounterSources& sources, Instant start);

  NetworkObserver& frames() { return frames_; }
  Instant step_end() const override { return record_.step_end(); }
  void close_step(Instant next) override;
  void finish(Instant end);

  bool write(const std::string& file) const;
  // Names of counters, NICs and ports, and the length of a step.
  void describe(JsonWriter& json, const Dragonfly& topology) const;

 private:
  std::vector<StepRecord::Growth> grown(Instant now);
  void note(std::vector<StepRecord::Growth>& all, std::uint64_t key, std::uint64_t value);
  void put_frames(NicCounters& counters) const;
  void describe_ports(JsonWriter& json, const Dragonfly& topology) const;

  CounterSources sources_;
  FrameRecord frames_;
  StepRecord record_;
  std::map<std::uint64_t, std::uint64_t> before_;  // by key: as of the last step
};

}  // namespace dryfly
