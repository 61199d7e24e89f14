// A machine that a motif has to itself: for measurements below MPI, such as those of the cxi_* diagnostics
// (docs/model/measurements.md#provider-diagnostics), and for patterns over more NICs than processes fit on one
// computer.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/machine/machine.hpp"
#include "core/motif/motif_host.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/spec.hpp"

namespace dryfly::generator {

class Stand final {
 public:
  using Action = MotifHost::Action;

  explicit Stand(const Spec& spec);

  const Spec& spec() const { return spec_; }
  const Dragonfly& topology() const { return machine_.topology; }
  Instant now() const { return machine_.engine.now(); }
  EndpointId open(NicId nic);
  // Runs until nothing is left to do.
  void run() { machine_.engine.run(never); }

  // As MotifHost has them.
  void at(Instant instant, Action action) { host_.at(instant, std::move(action)); }
  // Now, or at the instant if that is later.
  void from(Instant instant, Action action) {
    if (instant <= now()) return action();
    at(instant, std::move(action));
  }
  void send(EndpointId from, EndpointId to, Bytes size, std::uint64_t tag, Action sent) {
    host_.send(from, to, size, tag, std::move(sent));
  }
  void receive(EndpointId at, Bytes capacity, std::uint64_t tag, Action received) {
    host_.receive(at, capacity, tag, std::move(received));
  }
  void rma(RmaKind kind, EndpointId from, EndpointId to, Bytes size, bool ordered, Action done) {
    host_.rma(kind, from, to, size, ordered, std::move(done));
  }

 private:
  const Spec& spec_;
  Machine machine_;
  MotifHost host_;
  Nics nics_;
  std::vector<std::uint32_t> nic_sockets_;  // by the NIC's number on its node
};

}  // namespace dryfly::generator
