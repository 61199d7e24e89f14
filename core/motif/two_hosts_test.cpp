// Two hosts in one simulation: one engine, one network, one set of NICs.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/host/hosts.hpp"
#include "core/machine/machine.hpp"
#include "core/motif/motif_host.hpp"
#include "core/nic/nic_spec.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly::generator {
namespace {

Spec machine() {
  fabric::SampleMachine sample;
  sample.more +=
      "nic.inline_bytes 192\nnic.pushed_bytes 96\nnic.eager_bytes 18433\nnic.rendezvous_head_bytes 2048\n"
      "nic.egress_latency_ps 200000\nnic.dma_read_latency_ps 400000\nnic.ingress_latency_ps 300000\n"
      "nic.command_interval_ps 10000\nnic.list_entries 16384\nnic.list_entries_share_ppm 1000000\n"
      "nic.command_latency_ps 100000\nnic.completion_latency_ps 50000\nnode.local_latency_ps 1000\n"
      "node.local_rate_bytes_per_s 1000000000\nnode.copy_ps 1000\n";
  return sample.spec();
}

// The first host has the end-points from 0 on, the second, whose CPU is 7 ns further from its NIC, those from 100.
struct TwoHosts {
  Spec spec = machine();
  Machine parts{spec};
  Hosts hosts;
  Nics nics{parts.engine, parts.carrier(), hosts, nic_spec(spec)};
  MotifHost first{parts.engine, nics, HostLatencies::read(spec)};
  MotifHost second{parts.engine, nics, {Duration{107'000}, Duration{57'000}}, EndpointId{100}};

  TwoHosts() {
    hosts.add(first, EndpointId{0}, 100);
    hosts.add(second, EndpointId{100}, 100);
  }
};

// Messages of all protocols there and back between two NICs, writes and reads beside them. When each was over.
struct Job {
  Job(TwoHosts& machine, MotifHost& its_host, NicId a, NicId b)
      : host(its_host),
        one(host.open(a, machine.parts.topology.node_of(a))),
        other(host.open(b, machine.parts.topology.node_of(b))) {}
  void begin() {
    for (const std::uint64_t size : {8, 4096, 100'000}) {
      const auto note = [this] { over_ps.push_back(host.now().ps); };
      host.receive(other, Bytes{size}, size, [this, note, size] {
        note();
        host.send(other, one, Bytes{size}, size, note);
      });
      host.receive(one, Bytes{size}, size, note);
      host.send(one, other, Bytes{size}, size, note);
      host.rma(RmaKind::write, one, other, Bytes{size}, true, note);
      host.rma(RmaKind::read, other, one, Bytes{size}, false, note);
    }
  }
  MotifHost& host;
  EndpointId one;
  EndpointId other;
  std::vector<std::uint64_t> over_ps;
};

using Times = std::vector<std::uint64_t>;

struct Both {
  Times first;
  Times second;
};

Both run(bool with_first, bool with_second, NicId a, NicId b, NicId c, NicId d) {
  TwoHosts machine;
  Job first{machine, machine.first, a, b};
  Job second{machine, machine.second, c, d};
  if (with_first) first.begin();
  if (with_second) second.begin();
  machine.parts.engine.run(never);
  CHECK(machine.parts.network->at_rest());
  CHECK(machine.nics.at_rest());
  return {first.over_ps, second.over_ps};
}

TEST_CASE("two hosts on different NICs see what each sees alone, to the picosecond") {
  // NICs 0 to 7 are one group of the sample machine, 8 to 15 the next: the jobs share no link.
  const Both together = run(true, true, {0}, {5}, {8}, {13});
  CHECK(together.first.size() == 18);  // six for each size
  CHECK(together.second.size() == 18);
  CHECK(together.first == run(true, false, {0}, {5}, {8}, {13}).first);
  CHECK(together.second == run(false, true, {0}, {5}, {8}, {13}).second);
  // Its own latencies: nothing of the second is as soon as the same of the first.
  CHECK(together.second.front() > together.first.front());
}

TEST_CASE("two hosts on the same NICs share them: each is over later than alone") {
  const Both together = run(true, true, {0}, {5}, {0}, {5});
  const Times first = run(true, false, {0}, {5}, {0}, {5}).first;
  const Times second = run(false, true, {0}, {5}, {0}, {5}).second;
  CHECK(together.first.size() == first.size());
  CHECK(together.second.size() == second.size());
  CHECK(together.first.back() > first.back());
  CHECK(together.second.back() > second.back());
}

}  // namespace
}  // namespace dryfly::generator
