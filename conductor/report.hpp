// The result of a run as JSON, written in one piece: a file of another name is renamed into place, so that a reader
// sees all of it or nothing. The keys: docs/reference/result-json.md.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "conductor/counter_sources.hpp"
#include "conductor/places.hpp"
#include "conductor/rank.hpp"
#include "conductor/segment.hpp"
#include "conductor/tally.hpp"
#include "conductor/triggers.hpp"
#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/spec.hpp"
#include "core/storage/storage_traffic.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

class JsonWriter;

// How often the conductor did what; for the health table and the benches.
struct GateTotals {
  std::uint64_t polls = 0;
  std::uint64_t waits = 0;
  std::uint64_t wakes = 0;        // futex wake-ups of ranks
  std::uint64_t sleeps = 0;       // of the conductor
  std::uint64_t standstills = 0;  // everybody waited and nothing was in flight: all polled again
  std::uint64_t outside = 0;      // ranks that stepped out of virtual time, as for a lock of a file
  std::uint64_t let_go = 0;       // ranks that slept outside the provider while everything else stood still
};

class Report {
 public:
  // What is reported of.
  struct Sources {
    const Engine& engine;
    const Dragonfly& topology;
    const Network& network;
    const Nics& nics;
    const storage::StorageTraffic* storage;  // null: the job has the network for itself
    const Segment& segment;
    const std::vector<Rank>& ranks;
    const Tally& tally;
    const Places& places;
    const Triggers& triggers;
  };

  Report(Spec spec, std::string path, const Sources& sources);

  const CounterSources& counter_sources() const { return counter_sources_; }
  // Virtual time begins.
  void start(Instant at);
  // When the last rank was at its end.
  Instant end() const;
  // Every rank is at the end. What went wrong with the file, in a sentence; empty if nothing did.
  std::string write(const GateTotals& gates) const;

 private:
  std::string text(const GateTotals& gates) const;
  // Of what was delivered and, where ranks talk through memory, of when each was at its end.
  Fingerprint fingerprint() const;
  void write_network(JsonWriter& json, const NetworkTotals& totals, Instant end) const;
  void write_simulator(JsonWriter& json, const GateTotals& gates) const;

  Spec spec_;
  std::string path_;
  Sources of_;
  CounterSources counter_sources_;
  Instant start_{};
  std::chrono::steady_clock::time_point started_at_{};
};

}  // namespace dryfly
