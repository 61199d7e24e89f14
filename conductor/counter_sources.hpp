// The counters of the job's NICs as of an instant: what the NICs count themselves, what goes to storage through them,
// as the hardware counts it whoever it is for, and what only the network knows: time-outs and what became of them,
// waits for room at the switch, and how the NIC's link fared.
//
// Code words come whether or not there is traffic (docs/model/counters.md#code-words), so how many have come follows
// from the time for which the link had a signal. A frame that the link has to send again stands for one code word that
// could not be mended.
#pragma once

#include <vector>

#include "core/contract/network.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/spec.hpp"
#include "core/storage/storage_traffic.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

class CounterSources {
 public:
  // `storage`: null where the job has the network for itself.
  CounterSources(const Spec& spec, const Dragonfly& topology, const Network& network, const Nics& nics,
                 const storage::StorageTraffic* storage);

  // Virtual time begins.
  void start(Instant at) { start_ = at; }
  // In the order of their NICs. `now` is not before what the network has done.
  std::vector<NicCounters> read(Instant now) const;

  // The port that drives the link to this NIC; the NIC's own drives the one from it.
  std::uint32_t port_to(NicId nic) const {
    return topology_.first_port(topology_.switch_of(nic)) + topology_.port_of(nic);
  }
  std::uint32_t port_of(NicId nic) const { return topology_.port_count() + nic.value; }
  const Framing& framing() const { return nics_.spec().framing; }

 private:
  static void add(NicCounters& counters, const NicAccount& account);
  static void add(NicCounters& counters, const NicTrackers& trackers);
  void add_link(NicCounters& counters, const std::vector<LinkHealth>& links, Instant now) const;

  const Dragonfly& topology_;
  const Network& network_;
  const Nics& nics_;
  const storage::StorageTraffic* storage_;
  Duration code_word_;
  Instant start_{};
};

}  // namespace dryfly
