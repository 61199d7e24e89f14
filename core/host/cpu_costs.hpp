// What the software of a host costs on the machine's CPU, and how far the CPU is from its NIC: what every host of NICs
// adds to what they do. Read once from the spec, for ranks and for motifs alike.
//
// Models docs/model/host-costs.md. Processes learn their costs from shared memory, as wire::HostCosts: what is loaded
// into a program includes nothing of the core, so the conductor copies them there, field by field.
#pragma once

#include "core/spec/fields.hpp"
#include "core/spec/nearness.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

struct CpuCosts {
  Duration send;          // one send call, of a payload inside its command
  Duration send_fetched;  // of one that the NIC fetches
  Duration receive;       // one receive posted
  Duration rma;           // one write or atomic, of a payload inside its command
  Duration rma_fetched;   // one whose payload the NIC fetches, or which brings something back
  Duration completion;    // seeing that something else is complete than
  Duration sent;          // a send, or
  Duration received;      // a message
  Duration poll;          // one poll that finds nothing
  Duration clock_read;    // one reading of a clock by the program
  Duration match;         // one message matched, or one header taken over, by software
  Duration wake;          // more for the first of what a waiting CPU sees
  Duration buffer;        // more for a send or a receive of the host's memory
  Duration gpu_buffer;    // and of a GPU's

  static CpuCosts read(const Spec& spec) {
    const auto cost = [&](const NumberField& field) { return Duration{spec.number(field)}; };
    const auto cost_or = [&](const NumberField& field, const NumberField& usual) {
      return cost(spec.has(field) ? field : usual);
    };
    const auto cost_or_none = [&](const NumberField& field) { return spec.has(field) ? cost(field) : Duration{}; };
    return {.send = cost(fields::host_send_ps),
            .send_fetched = cost_or(fields::host_send_fetched_ps, fields::host_send_ps),
            .receive = cost(fields::host_receive_ps),
            .rma = cost(fields::host_rma_ps),
            .rma_fetched = cost_or(fields::host_rma_fetched_ps, fields::host_rma_ps),
            .completion = cost(fields::host_completion_ps),
            .sent = cost_or(fields::host_sent_ps, fields::host_completion_ps),
            .received = cost_or(fields::host_received_ps, fields::host_completion_ps),
            .poll = cost(fields::host_poll_ps),
            .clock_read = cost(fields::host_clock_read_ps),
            .match = cost(fields::host_match_ps),
            .wake = cost_or_none(fields::host_wake_ps),
            .buffer = cost_or_none(fields::host_buffer_ps),
            .gpu_buffer = cost_or_none(fields::host_gpu_buffer_ps)};
  }
};

// A command reaches its NIC so long after the CPU has given it, and the CPU can see what its NIC reports so long after
// the NIC knows it.
struct HostLatencies {
  Duration command;
  Duration completion;

  static HostLatencies read(const Spec& spec) {
    return {.command = Duration{spec.number(fields::nic_command_latency_ps)},
            .completion = Duration{spec.number(fields::nic_completion_latency_ps)}};
  }
  // Of end-points that talk through the memory of their node: what one core has written another sees a latency later,
  // half of which is the way there: between the nearest two. What is farther takes the rest on the way
  // (nic::Transport).
  static HostLatencies of_memory(const Spec& spec) {
    const std::uint64_t whole = Nearness::read(spec).way(0).latency.ps;
    return {.command = Duration{whole / 2}, .completion = Duration{whole - whole / 2}};
  }
  Instant at_nic(Instant given) const { return given + command; }
  Instant at_cpu(Instant reported) const { return reported + completion; }
};

}  // namespace dryfly
