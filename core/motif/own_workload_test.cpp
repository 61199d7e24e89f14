// The guide's example of a skeleton in C++ (docs/example/ring.cpp) is compiled as it stands there, and run.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/motif/workload/workload.hpp"
#include "testing/motif_stage.hpp"

namespace dryfly::motif {

Answer predict_ring(Stage& stage, Parameters& parameters);

namespace {

TEST_CASE("a skeleton of one's own says what it has sent, how long a step took, and what the library chose") {
  fabric::SampleMachine machine;
  machine.more +=
      "nic.inline_bytes 192\nnic.pushed_bytes 96\nnic.eager_bytes 18433\nnic.rendezvous_head_bytes 2048\n"
      "nic.egress_latency_ps 333560\nnic.dma_read_latency_ps 600000\nnic.ingress_latency_ps 333560\n"
      "nic.command_interval_ps 29600\nnic.list_entries 16384\nnic.list_entries_share_ppm 1000000\n"
      "nic.command_latency_ps 300000\nnic.completion_latency_ps 300000\nnode.local_latency_ps 300000\n"
      "node.local_rate_bytes_per_s 12000000000\nnode.copy_ps 33000\nhost.send_ps 385000\nhost.receive_ps 70000\n"
      "host.rma_ps 385000\nhost.completion_ps 315000\nhost.poll_ps 30000\nhost.clock_read_ps 25000\n"
      "host.match_ps 100000\n";
  const Spec spec = machine.spec();
  std::vector<const char*> words{"nodes=4", "ppn=1", "steps=5", "bytes=1024", "work_ps=7000000"};
  Parameters parameters(words);
  Stage stage(spec, parameters);
  const Answer answer = predict_ring(stage, parameters);
  CHECK(answer.totals.messages == 4 * 5 + 4 * 2);  // and a sum by recursive doubling
  CHECK(answer.totals.bytes == 4 * 5 * 1024 + 4 * 2 * 8);
  CHECK(answer.time > Duration{7'000'000});
  CHECK(answer.chosen == std::vector<std::string>{"allreduce of 8 B on 4 ranks: recursive_doubling (mpich: bytes<=8)"});
  std::vector<const char*> wrong{"nodes=4", "ppn=1", "step=5"};
  Parameters unknown(wrong);
  Stage another(spec, unknown);
  CHECK_THROWS_WITH_AS(predict_ring(another, unknown), doctest::Contains("step"), SpecError);
}

}  // namespace
}  // namespace dryfly::motif
