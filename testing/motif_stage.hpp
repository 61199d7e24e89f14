// A job of skeletons on a sample machine, for tests: what the program does is given as a function, and what came of it
// is there afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/machine/machine.hpp"
#include "core/motif/job/bus_carriage.hpp"
#include "core/motif/job/endpoints_carriage.hpp"
#include "core/motif/job/job.hpp"
#include "core/motif/job/links_carriage.hpp"
#include "core/motif/job/network_carriage.hpp"
#include "core/network/fabric/fault_plan.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly::motif {

// Command 100 ns, egress 200 ns, fetching 400 ns, ingress 300 ns, completion 50 ns; one command each 10 ns. A send
// costs the CPU 20 ns, a receive 30 ns, a one-sided access 40 ns, seeing any of them complete 5 ns.
inline Spec motif_spec(fabric::SampleMachine machine = {}) {
  machine.more +=
      "nic.inline_bytes 192\nnic.pushed_bytes 96\nnic.eager_bytes 16384\nnic.rendezvous_head_bytes 2048\n"
      "nic.egress_latency_ps 200000\nnic.dma_read_latency_ps 400000\nnic.ingress_latency_ps 300000\n"
      "nic.command_interval_ps 10000\nnic.reduction_latency_ps 50000\nnic.list_entries "
      "16384\nnic.list_entries_share_ppm 1000000\n"
      "nic.command_latency_ps 100000\nnic.completion_latency_ps 50000\nnode.local_latency_ps 70000\n"
      "node.local_rate_bytes_per_s 10000000000\nnode.copy_ps 1000\nhost.send_ps 20000\nhost.receive_ps 30000\n"
      "host.rma_ps 40000\nhost.completion_ps 5000\nhost.poll_ps 1000\nhost.clock_read_ps 1000\nhost.match_ps 0\n";
  return machine.spec();
}

enum class Way : std::uint8_t { endpoints, links, network };

class MotifStage {
 public:
  explicit MotifStage(Way way, std::uint32_t nodes = 8, std::uint32_t ranks_per_node = 1,
                      const fabric::SampleMachine& machine = {}, const std::function<void(JobCosts&)>& change = {},
                      std::uint32_t cores = 1)
      : spec_(motif_spec(machine)),
        machine_(spec_, job_slot_width_bits),
        placement_(machine_.topology, nodes, ranks_per_node),
        noises_(spec_, placement_) {
    if (fabric::FaultPlan::any_in(spec_)) machine_.network->restart(Instant{});
    if (way == Way::endpoints) carriage_ = std::make_unique<EndpointsCarriage>(spec_, machine_.topology);
    if (way == Way::links) carriage_ = std::make_unique<LinksCarriage>(spec_, machine_.topology);
    if (way == Way::network) {
      auto network = std::make_unique<NetworkCarriage>(spec_, machine_.topology, machine_.engine, machine_.carrier());
      network_ = network.get();
      carriage_ = std::move(network);
    }
    if (way != Way::network && BusCarriage::is_in(spec_)) {
      carriage_ = std::make_unique<BusCarriage>(spec_, machine_.topology, std::move(carriage_));
    }
    JobCosts costs = JobCosts::read(spec_);
    if (change) change(costs);
    job_ = std::make_unique<Job>(machine_.engine, placement_, *carriage_, costs, noises_, cores);
    if (network_ != nullptr) network_->tell(job_->carriage_listener());
  }

  Job& run(const Job::Program& program) {
    job_->run(program);
    return *job_;
  }
  Job& job() { return *job_; }

 private:
  Spec spec_;
  Machine machine_;
  Placement placement_;
  Noises noises_;
  std::unique_ptr<Carriage> carriage_;
  NetworkCarriage* network_ = nullptr;
  std::unique_ptr<Job> job_;
};

// Of one group, with a switch for all nodes.
inline fabric::SampleMachine one_switch(std::uint32_t nodes, std::uint32_t nics = 1) {
  fabric::SampleMachine machine;
  machine.groups = 1;
  machine.switches = 1;
  machine.nodes = nodes;
  machine.nics_per_node = nics;
  machine.global_links = 1;
  return machine;
}

struct Ran {
  Instant end;
  std::uint64_t fingerprint;
  std::vector<SentMessage> sent;
};

inline Ran run_on(MotifStage& stage, const Job::Program& program) {
  Ran ran;
  stage.job().run(program, &ran.sent);
  ran.end = stage.job().end();
  ran.fingerprint = stage.job().fingerprint();
  return ran;
}

}  // namespace dryfly::motif
