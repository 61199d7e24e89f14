#include <doctest/doctest.h>

#include "testing/test_stand.hpp"

namespace dryfly::nic {
namespace {

std::uint64_t of(const TestStand& stand, std::uint32_t nic, std::string_view name) {
  for (const NicCounters& counters : stand.nics.counters()) {
    if (counters.nic.value != nic) continue;
    for (std::size_t index = 0; index < counter_count; ++index) {
      if (counter_name(index) == name) return counters.values[index];
    }
  }
  FAIL("no such NIC or counter");
  return 0;
}

TEST_CASE("each counter has a name of its own") {
  for (std::size_t a = 0; a < counter_count; ++a) {
    CHECK(!counter_name(a).empty());
    for (std::size_t b = 0; b < a; ++b) CHECK(counter_name(a) != counter_name(b));
  }
}

TEST_CASE("an inline message is one frame of its size with the header, and one acknowledgement back") {
  TestStand stand;
  stand.at(0, [&] {
    stand.nics.receive(receive_of(2, 1));
    stand.nics.send(message(0, 2, 8, 2));  // 8 + 64 bytes
  });
  stand.run();
  CHECK(of(stand, 0, "cq_num_idc_cmds_0") == 1);
  CHECK(of(stand, 0, "cq_num_dma_cmds_0") == 0);
  CHECK(of(stand, 0, "hni_tx_ok_65_to_127") == 1);
  CHECK(of(stand, 0, "hni_rx_ok_35") == 1);
  CHECK(of(stand, 0, "hni_pkts_sent_by_tc_0") == 1);
  CHECK(of(stand, 1, "hni_rx_ok_65_to_127") == 1);
  CHECK(of(stand, 1, "hni_tx_ok_35") == 1);
  CHECK(of(stand, 1, "hni_pkts_recv_by_tc_0") == 1);
  CHECK(of(stand, 1, "lpe_append_cmds_0") == 1);
  CHECK(of(stand, 1, "lpe_net_match_priority_0") == 1);
  CHECK(of(stand, 1, "lpe_net_match_overflow_0") == 0);
}

TEST_CASE("a rendezvous of 32 KiB is a head of one packet and 15 packets of the next class, as is measured") {
  TestStand stand;
  stand.at(0, [&] { stand.nics.send(message(0, 2, 32'768, 2)); });
  stand.at(5'000 * ns, [&] { stand.nics.receive(receive_of(2, 1)); });
  stand.run();
  // The head has 2,048 bytes, the Get's data the other 30,720: 15 packets. Get and done have no payload.
  CHECK(of(stand, 0, "hni_pkts_sent_by_tc_0") == 1);
  CHECK(of(stand, 0, "hni_pkts_sent_by_tc_1") == 15);
  CHECK(of(stand, 0, "hni_tx_ok_2048_to_4095") == 16);
  CHECK(of(stand, 1, "hni_tx_ok_64") == 2);
  CHECK(of(stand, 1, "lpe_rndzv_puts_0") == 1);
  CHECK(of(stand, 1, "lpe_rndzv_puts_offloaded_0") == 1);
  CHECK(of(stand, 1, "lpe_net_match_overflow_0") == 1);
  CHECK(of(stand, 0, "pct_req_ordered") == 1);
  CHECK(of(stand, 1, "pct_req_unordered") == 1);
}

TEST_CASE("messages by memory are no business of NICs") {
  TestStand stand;
  stand.open_in_memory();
  stand.at(0, [&] {
    stand.nics.receive(receive_of(15, 1));
    stand.nics.send(message(14, 15, 100, 2));
  });
  stand.run();
  CHECK(of(stand, 5, "cq_num_idc_cmds_0") == 0);
  CHECK(of(stand, 5, "lpe_net_match_requests_0") == 0);
}

TEST_CASE("atomics and reads are counted where they are carried out") {
  TestStand stand;
  stand.at(0, [&] {
    stand.nics.rma({.kind = RmaKind::fetching_atomic, .source = {0}, .target = {2}, .size = {8}, .token = 1});
    stand.nics.rma({.kind = RmaKind::read, .source = {0}, .target = {2}, .size = {4096}, .token = 2});
  });
  stand.run();
  CHECK(of(stand, 1, "lpe_amo_cmds") == 1);
  CHECK(of(stand, 1, "lpe_famo_cmds") == 1);
  CHECK(of(stand, 0, "cq_num_idc_cmds_0") == 1);
  CHECK(of(stand, 0, "cq_num_dma_cmds_0") == 1);
  CHECK(of(stand, 0, "hni_pkts_recv_by_tc_1") == 3);  // the fetched value and two packets of data
}

TEST_CASE("a restart forgets what was counted") {
  TestStand stand;
  stand.at(0, [&] {
    stand.nics.receive(receive_of(2, 1));
    stand.nics.send(message(0, 2, 8, 2));
  });
  stand.run();
  stand.nics.restart();
  CHECK(of(stand, 0, "hni_tx_ok_65_to_127") == 0);
}

}  // namespace
}  // namespace dryfly::nic
