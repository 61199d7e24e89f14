// One-sided operations, instants exact to the picosecond; test_stand.hpp has the figures.
#include <doctest/doctest.h>

#include "core/nic/nic_spec.hpp"
#include "testing/test_stand.hpp"

namespace dryfly::nic {
namespace {

using Log = TestStand::Log;

RmaCommand rma(RmaKind kind, std::uint32_t source, std::uint32_t target, std::uint64_t size, Token token) {
  return {
      .kind = kind, .source = EndpointId{source}, .target = EndpointId{target}, .size = Bytes{size}, .token = token};
}

TEST_CASE("a write is applied after ingress and done at its acknowledgement") {
  TestStand stand;
  stand.nics.rma(rma(RmaKind::write, 0, 2, 8, 10));
  CHECK_FALSE(stand.nics.at_rest());
  stand.run();
  CHECK(stand.log == Log{"1300 rma_delivered 10", "1300 apply 10", "2000 rma_done 10 from 0 error 0"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("a write is acknowledged when the target has matched it, not when it comes off the link") {
  TestStand stand;
  stand.network.acknowledgement_time = {100 * ns};  // 100 + 1,000 + 200 + 100
  stand.nics.rma(rma(RmaKind::write, 0, 2, 8, 10));
  stand.run();
  CHECK(stand.log == Log{"1300 rma_delivered 10", "1300 apply 10", "1400 rma_done 10 from 0 error 0"});
}

TEST_CASE("the command of a write over 96 bytes is fetched, that of an atomic or a read never") {
  TestStand stand;
  stand.nics.rma(rma(RmaKind::write, 0, 2, 97, 10));
  stand.nics.rma(rma(RmaKind::atomic, 1, 2, 128, 11));
  stand.nics.rma(rma(RmaKind::read, 1, 2, 97, 12));
  stand.run();
  Log delivered;
  for (const std::string& line : stand.log) {
    if (line.find("rma_delivered") != std::string::npos) delivered.push_back(line);
  }
  // Each 10 after the one before it; 10 fetches for 300.
  CHECK(delivered == Log{"1310 rma_delivered 11", "1320 rma_delivered 12", "1600 rma_delivered 10"});
}

TEST_CASE("a write with delivery completion is acknowledged after a read of the target's NIC from memory") {
  TestStand stand;
  RmaCommand command = rma(RmaKind::write, 0, 2, 8, 10);
  command.flush = true;
  stand.nics.rma(command);
  stand.run();
  // There at 1,100; placed 200 later; read 300; 700 back.
  CHECK(stand.log == Log{"1300 rma_delivered 10", "1300 apply 10", "2300 rma_done 10 from 0 error 0"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("what is answered with data, and what goes by memory, needs no flush") {
  TestStand stand;
  stand.open_in_memory();
  RmaCommand command = rma(RmaKind::fetching_atomic, 0, 2, 8, 10);
  command.flush = true;
  stand.nics.rma(command);
  command = rma(RmaKind::write, 14, 15, 8, 11);
  command.flush = true;
  stand.nics.rma(command);
  stand.run();
  CHECK(stand.log == Log{"58 rma_delivered 11 on-node", "58 apply 11", "58 rma_done 11 from 14 error 0",
                         "1300 rma_delivered 10", "1300 apply 10", "2500 rma_done 10 from 0 error 0"});
}

TEST_CASE("a long write is fetched first, and ordered only if asked") {
  TestStand stand;
  RmaCommand command = rma(RmaKind::write, 0, 2, 4096, 10);
  stand.nics.rma(command);
  command.ordered = false;
  command.token = 11;
  stand.nics.rma(command);
  stand.run();
  REQUIRE(stand.network.submitted.size() == 2);
  CHECK(stand.network.submitted[0].at == Instant{400 * ns});
  CHECK(stand.network.submitted[0].transfer.ordered);
  CHECK(stand.network.submitted[0].transfer.size == Bytes{4096});
  CHECK(stand.network.submitted[1].at == Instant{410 * ns});
  CHECK_FALSE(stand.network.submitted[1].transfer.ordered);
}

TEST_CASE("a read is a request, and data fetched at the target and placed at the source") {
  TestStand stand;
  stand.nics.rma(rma(RmaKind::read, 0, 2, 4096, 10));
  stand.run();
  // Applied at 1,300, fetched at 1,600, there at 2,600, placed at 2,800; its acknowledgement is back at 3,300.
  CHECK(stand.log == Log{"1300 rma_delivered 10", "1300 apply 10", "2800 rma_done 10 from 0 error 0"});
  CHECK(stand.engine.now() == Instant{3300 * ns});
  REQUIRE(stand.network.submitted.size() == 2);
  CHECK(stand.network.submitted[0].transfer.size == Bytes{0});
  CHECK(stand.network.submitted[1].transfer.size == Bytes{4096});
  CHECK(stand.network.submitted[1].transfer.source == NicId{1});
  CHECK_FALSE(stand.network.submitted[1].transfer.ordered);
  CHECK(stand.nics.at_rest());
}

TEST_CASE("a NIC answers reads one after the other, with a gap between what it sends, and other NICs do not wait") {
  NicSpec spec = TestStand::round_figures();
  spec.answering = {.gap = {250 * ns}, .rate = {1'000'000'000}, .framing = spec.framing};
  TestStand stand{spec};
  stand.nics.rma(rma(RmaKind::read, 0, 2, 3872, 10));
  stand.nics.rma(rma(RmaKind::read, 0, 2, 100'000, 11));
  stand.nics.rma(rma(RmaKind::read, 0, 2, 3872, 12));
  stand.nics.rma(rma(RmaKind::read, 0, 3, 3872, 13));
  stand.nics.rma(rma(RmaKind::read, 0, 2, 2048, 14));
  stand.run();
  // The reads are there from 1,300 on, each 10 after the one before it, and each is fetched for 300. The second waits
  // for the first one's two packets, 4,000 on the link, and the gap; the third for 64 KiB of the second in 32 packets,
  // 67,584, and a gap more. Another NIC, and what is one packet, do not wait.
  std::vector<std::uint64_t> answers;
  for (const auto& one : stand.network.submitted) {
    if (one.transfer.size != Bytes{0}) answers.push_back(one.at.ps / ns);
  }
  CHECK(answers == std::vector<std::uint64_t>{1600, 1630, 1640, 5850, 5850 + 67'584 + 250});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("reads of one queue come one after the other, and each completes when all of its parts are there") {
  NicSpec spec = TestStand::round_figures();
  spec.get_queues = {
      .of_rendezvous = 1, .of_reads = 1, .window = Bytes{128 * 1024}, .packet = spec.framing.payload_max};
  TestStand stand{spec};
  stand.nics.rma(rma(RmaKind::read, 0, 2, 200'000, 10));
  stand.nics.rma(rma(RmaKind::read, 0, 3, 200'000, 11));
  stand.run();
  // Each goes in 48 and 32 packets, and what is left when the first of these is there. Half of the window is free with
  // the second, which comes at the same instant.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const auto& one : stand.network.submitted) {
    if (one.transfer.size != Bytes{0}) parts.emplace_back(one.at.ps / ns, one.transfer.size.count);
  }
  CHECK(parts == std::vector<std::pair<std::uint64_t, std::uint64_t>>{
                     {1600, 98'304}, {1600, 65'536}, {2600, 36'160}, {2600, 98'304}, {2600, 65'536}, {3600, 36'160}});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("a fetching atomic brings its result back, a plain one completes at its acknowledgement") {
  TestStand stand;
  stand.nics.rma(rma(RmaKind::fetching_atomic, 0, 2, 8, 10));
  stand.nics.rma(rma(RmaKind::atomic, 0, 2, 8, 11));
  stand.run();
  // 10: there and applied at 1,300, result there at 2,300, placed at 2,500. 11: 10 later, acknowledged at 2,010.
  CHECK(stand.log == Log{"1300 rma_delivered 10", "1300 apply 10", "1310 rma_delivered 11", "1310 apply 11",
                         "2010 rma_done 11 from 0 error 0", "2500 rma_done 10 from 0 error 0"});
}

TEST_CASE("what apply refuses comes back as the error of the operation, without data") {
  TestStand stand;
  stand.apply_error = 267;
  stand.nics.rma(rma(RmaKind::read, 0, 2, 4096, 10));
  stand.nics.rma(rma(RmaKind::write, 0, 2, 8, 11));
  stand.run();
  // The refusal of the read needs no fetch: 1,300 + 1,000 + 200.
  CHECK(stand.log == Log{"1300 rma_delivered 10", "1300 apply 10", "1310 rma_delivered 11", "1310 apply 11",
                         "2010 rma_done 11 from 0 error 267", "2500 rma_done 10 from 0 error 267"});
  REQUIRE(stand.network.submitted.size() == 3);
  CHECK(stand.network.submitted[2].transfer.size == Bytes{0});
}

TEST_CASE("by memory the core that asks copies, and an operation is complete on arrival") {
  TestStand stand;
  stand.open_in_memory();
  stand.nics.rma(rma(RmaKind::write, 14, 15, 1000, 10));  // until 1,050
  stand.nics.rma(rma(RmaKind::read, 14, 15, 500, 11));    // its request behind that; then until 1,600
  stand.run();
  CHECK(stand.log == Log{"1050 rma_delivered 10 on-node", "1050 apply 10", "1050 rma_done 10 from 14 error 0",
                         "1050 rma_delivered 11 on-node", "1050 apply 11", "1600 rma_done 11 from 14 error 0"});
  CHECK(stand.network.submitted.empty());
  CHECK(stand.nics.at_rest());
}

TEST_CASE("ordered writes are applied in the order given, also a long one before a short one") {
  TestStand stand;
  stand.nics.rma(rma(RmaKind::write, 0, 2, 100'000, 10));
  stand.nics.rma(rma(RmaKind::write, 0, 2, 8, 11));
  stand.nics.rma(rma(RmaKind::atomic, 0, 2, 8, 12));
  stand.run();
  Log applied;
  for (const std::string& line : stand.log) {
    if (line.find("apply") != std::string::npos) applied.push_back(line);
  }
  CHECK(applied == Log{"1600 apply 10", "1600 apply 11", "1600 apply 12"});
}

TEST_CASE("RMA is counted as put, get and atomic, with the bytes moved") {
  TestStand stand;
  stand.nics.rma(rma(RmaKind::write, 0, 2, 10, 10));
  stand.nics.rma(rma(RmaKind::read, 0, 2, 20, 11));
  stand.nics.rma(rma(RmaKind::atomic, 0, 2, 8, 12));
  stand.nics.rma(rma(RmaKind::fetching_atomic, 0, 1, 8, 13));
  stand.run();
  const NicTotals totals = stand.nics.totals();
  CHECK(totals.bytes[static_cast<std::size_t>(Protocol::put)][3] == 10);
  CHECK(totals.bytes[static_cast<std::size_t>(Protocol::get)][3] == 20);
  CHECK(totals.messages[static_cast<std::size_t>(Protocol::atomic)][3] == 1);
  CHECK(totals.messages[static_cast<std::size_t>(Protocol::atomic)][NicTotals::on_node_column] == 1);
}

constexpr const char* spec_text =
    "nic.inline_bytes 192\nnic.pushed_bytes 96\nnic.eager_bytes 18433\nnic.rendezvous_head_bytes "
    "2048\nnic.egress_latency_ps 1\n"
    "nic.dma_read_latency_ps 2\nnic.ingress_latency_ps 3\nnic.command_interval_ps 4\nnic.list_entries "
    "1000\nnic.list_entries_share_ppm 250000\nnode.copy_ps 5\n"
    "node.local_latency_ps 10\nnode.local_rate_bytes_per_s 6000000\nnode.cached_bytes 10\nnode.memory_rate_bytes_per_s "
    "11000000\n"
    "fabric.packet.payload_bytes 7\nfabric.packet.header_bytes 8\n"
    "fabric.packet.ack_bytes 9\n";

TEST_CASE("the spec of the NIC is read from the resolved spec") {
  const NicSpec spec = nic_spec(Spec::parse(spec_text));
  CHECK(spec.inline_max == Bytes{192});
  CHECK(spec.pushed_max == Bytes{96});
  CHECK(spec.eager_max == Bytes{18'433});
  CHECK(spec.rendezvous_head == Bytes{2048});
  CHECK(spec.egress_latency == Duration{1});
  CHECK(spec.dma_read_latency == Duration{2});
  CHECK(spec.ingress_latency == Duration{3});
  CHECK(spec.command_interval == Duration{4});
  CHECK(spec.memory.copy == Duration{5});
  CHECK(spec.memory.copy_rate == Rate{6'000'000});
  CHECK(spec.memory.cached == Bytes{10});
  CHECK(spec.memory.rate == Rate{11'000'000});
  CHECK(spec.framing.payload_max == Bytes{7});
  CHECK(spec.framing.header == Bytes{8});
  CHECK(spec.framing.acknowledgement == Bytes{9});
}

TEST_CASE("a rendezvous head longer than an eager message is refused in one sentence") {
  std::string text = spec_text;
  text.replace(text.find("2048"), 4, "18434");
  CHECK_THROWS_WITH_AS(nic_spec(Spec::parse(text)), "nic.rendezvous_head_bytes = 18434: accepted are 0 to 18433",
                       SpecError);
}

}  // namespace
}  // namespace dryfly::nic
