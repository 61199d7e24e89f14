// What is counted over a real network, in closed form where there is one. Numbers are those of sample_machine.hpp:
// packets of 2,048 B with 64 B of header on links of 25 GB/s, acknowledgements of 32 B. NICs 2k and 2k + 1 hang on
// switch k; each NIC has one end-point, of the same number.
#include "conductor/counter_sources.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "conductor/counter_series.hpp"
#include "core/network/packet/packet_network.hpp"
#include "testing/sample_machine.hpp"
#include "testing/test_stand.hpp"

namespace dryfly {
namespace {

constexpr std::uint64_t us = 1'000'000;
constexpr std::uint64_t s = 1'000'000 * us;
constexpr std::uint32_t nics = 8;

// A fault of the link of NIC 0, both directions, from the beginning.
fabric::SampleMachine with_fault(const std::string& kind, const std::string& more, std::uint64_t until_ps = 0) {
  fabric::SampleMachine machine;
  machine.more += fabric::fault_times(1) + "faults.seed 1\nfaults.count 1\nfaults.0.kind " + kind +
                  "\nfaults.0.where n0\nfaults.0.from_ps 0\n" + more;
  if (until_ps != 0) machine.more += "faults.0.until_ps " + std::to_string(until_ps) + "\n";
  return machine;
}

// Nobody listens: the numbers are looked at when all is over.
class Stand final : public Host {
 public:
  explicit Stand(const fabric::SampleMachine& machine = {})
      : spec(machine.spec()),
        topology(spec),
        network(engine, topology, spec),
        all(engine, network, *this, nic_spec()),
        sources(spec, topology, network, all, nullptr) {
    network.restart(Instant{0});
    for (std::uint32_t nic = 0; nic < nics; ++nic) {
      all.open_endpoint(EndpointId{nic}, NicId{nic}, topology.node_of(NicId{nic}));
    }
  }

  void message(std::uint32_t from, std::uint32_t to, std::uint64_t size,
               TrafficClass traffic_class = TrafficClass::best_effort) {
    const Token token = next_token_++;
    const Envelope envelope{.tagged = true, .tag = token};
    all.receive({.at = EndpointId{to}, .tagged = true, .tag = token, .capacity = Bytes{size}, .token = token});
    all.send({.source = EndpointId{from},
              .target = EndpointId{to},
              .envelope = envelope,
              .size = Bytes{size},
              .token = token,
              .traffic_class = traffic_class});
  }
  // Of a NIC, or, without one, of all together.
  std::uint64_t of(Counter counter, std::size_t place = 0, std::uint32_t nic = nics) const {
    std::uint64_t sum = 0;
    for (const NicCounters& counters : sources.read(engine.now())) {
      if (nic == nics || counters.nic.value == nic) sum += counters.values[static_cast<std::size_t>(counter) + place];
    }
    return sum;
  }

  void sent(EndpointId, Token) override {}
  void received(const Received&) override { ++messages_received; }
  void send_failed(EndpointId, Token, int) override { ++messages_failed; }
  void receive_failed(const Received&, int) override {}
  void peeked(const Peeked&) override {}
  void cancelled(EndpointId, Token) override {}
  void dropped(EndpointId, Token) override {}
  int apply(EndpointId, Token) override { return 0; }
  void rma_done(EndpointId, Token, int) override {}
  void needs_processor(EndpointId, const Work&) override {}
  void rma_delivered(const RmaCommand&, bool, std::uint32_t) override {}

  const Spec spec;
  Engine engine;
  const Dragonfly topology;
  PacketNetwork network;
  Nics all;
  CounterSources sources;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_failed = 0;

 private:
  static NicSpec nic_spec() {
    NicSpec spec = nic::TestStand::round_figures();
    spec.framing.acknowledgement = Bytes{32};
    return spec;
  }

  Token next_token_ = 1;
};

// Some of everything, from each NIC to each other one.
void talk(Stand& stand) {
  constexpr TrafficClass classes[] = {TrafficClass::best_effort, TrafficClass::low_latency, TrafficClass::bulk_data};
  for (std::uint32_t from = 0; from < nics; ++from) {
    for (std::uint32_t to = 0; to < nics; ++to) {
      if (from == to) continue;
      for (const std::uint64_t size : {8, 3000, 16'000, 100'000})
        stand.message(from, to, size, classes[(from + to) % 3]);
    }
  }
}

std::vector<CounterStep> rows_of(const CounterSeries& series) {
  const std::string file = (std::filesystem::temp_directory_path() / "dryfly-counter-series-test").string();
  REQUIRE(series.write(file));
  std::ifstream written(file, std::ios::binary);
  std::vector<CounterStep> rows;
  for (CounterStep row; written.read(reinterpret_cast<char*>(&row), sizeof row);) rows.push_back(row);
  std::filesystem::remove(file);
  return rows;
}

}  // namespace

TEST_CASE("each frame over a link that always replays is replayed once, and costs its receiver a code word") {
  // 5 messages of 10,000 B are 5 packets each, whose 25 frames cross NIC 0's link to its switch; the 25
  // acknowledgements come back by the other direction of the same cable.
  Stand stand(with_fault("replays", "faults.0.rate_ppb 1000000000\n"));
  for (int n = 0; n < 5; ++n) stand.message(0, 2, 10'000);
  stand.engine.run(never);
  CHECK(stand.messages_received == 5);
  CHECK(stand.of(Counter::hni_llr_tx_replay_event, 0, 0) == 25);
  CHECK(stand.of(Counter::hni_llr_rx_replay_event, 0, 0) == 25);
  CHECK(stand.of(Counter::hni_pcs_uncorrected_cw, 0, 0) == 25);
  CHECK(stand.of(Counter::hni_llr_tx_replay_event, 0, 2) == 0);
  // A code word is 640 B of data, 25.6 ns of a whole link; NIC 2's link has no trouble.
  const std::uint64_t code_words = stand.engine.now().ps / 25'600;
  CHECK(stand.of(Counter::hni_pcs_good_cw, 0, 0) == code_words - 25);
  CHECK(stand.of(Counter::hni_pcs_good_cw, 0, 2) == code_words);
  // The link mends it: end to end nothing is sent again.
  CHECK(stand.of(Counter::pct_retry_srb_requests) == 0);
  CHECK(stand.network.totals().faults.link_replays == 50);
}

TEST_CASE("of rare replays as many are counted as the links have had") {
  Stand stand(with_fault("replays", "faults.0.rate_ppb 50000000\n"));  // 5 %
  for (int n = 0; n < 100; ++n) stand.message(0, 2, 10'000);
  stand.engine.run(never);
  const std::uint64_t out = stand.of(Counter::hni_llr_tx_replay_event);
  const std::uint64_t in = stand.of(Counter::hni_llr_rx_replay_event);
  CHECK(out + in == stand.network.totals().faults.link_replays);
  // 500 draws of 5 % each way: 25 are expected, with a deviation of 4.9.
  CHECK(out > 5);
  CHECK(out < 50);
  CHECK(stand.of(Counter::hni_pcs_uncorrected_cw) == in);
}

TEST_CASE("a link on two lanes brings half the code words, one that is down none") {
  Stand half(with_fault("lanes", "faults.0.lanes 2\n", 2 * s));
  half.message(0, 2, 8);
  half.engine.run(never);
  CHECK(half.sources.read(Instant{4 * s})[0].values[static_cast<std::size_t>(Counter::hni_pcs_good_cw)] ==
        3 * s / 25'600);
  Stand down(with_fault("down", "", 1 * s));
  down.message(2, 4, 8);
  down.engine.run(never);
  CHECK(down.sources.read(Instant{4 * s})[0].values[static_cast<std::size_t>(Counter::hni_pcs_good_cw)] ==
        3 * s / 25'600);
}

TEST_CASE("what is lost times out, is sent again and is counted so where it was sent") {
  // Down for half a second: the packet is lost and sent again after 1.07 s.
  Stand stand(with_fault("down", "", s / 2));
  stand.message(0, 2, 5000);  // 3 packets of one flow, which times out as one
  stand.engine.run(never);
  CHECK(stand.messages_received == 1);
  CHECK(stand.of(Counter::rh_sct_timeouts, 0, 0) == 1);
  CHECK(stand.of(Counter::pct_sct_timeouts, 0, 0) == 1);
  CHECK(stand.of(Counter::rh_spt_timeouts) == 0);
  CHECK(stand.of(Counter::pct_retry_srb_requests, 0, 0) == 3);
  CHECK(stand.of(Counter::pct_retry_srb_requests) == stand.network.totals().faults.pieces_sent_again);
  CHECK(stand.of(Counter::rh_connections_cancelled) == 0);
}

TEST_CASE("what is given up is counted as a cancelled connection with its packets") {
  Stand stand(with_fault("down", "", 100 * s));
  stand.message(0, 2, 5000);
  stand.engine.run(Instant{50 * s});
  CHECK(stand.messages_failed == 1);
  CHECK(stand.of(Counter::rh_connections_cancelled, 0, 0) == 1);
  CHECK(stand.of(Counter::rh_pkts_cancelled_o, 0, 0) == 3);
  CHECK(stand.of(Counter::rh_pkts_cancelled_u) == 0);
}

TEST_CASE("a packet refused for its place in a flow is a NACK at the NIC that sent it") {
  // The first packets are lost, those that leave when the link is up again come out of sequence.
  Stand stand(with_fault("down", "", 3 * us));
  for (int n = 0; n < 40; ++n) stand.message(0, 2, 10'000);
  stand.engine.run(never);
  CHECK(stand.messages_received == 40);
  CHECK(stand.of(Counter::rh_nacks, 0, 0) > 0);
  CHECK(stand.of(Counter::rh_nacks, 0, 0) == stand.network.totals().faults.pieces_refused);
  CHECK(stand.of(Counter::rh_nack_sequence_error) == stand.of(Counter::rh_nacks));
}

TEST_CASE("what a target has no room to keep track of is a NACK, and sent again, at the NIC that sent it") {
  fabric::SampleMachine machine;
  machine.more +=
      "fabric.nic.trackers.source_connections 4096\nfabric.nic.trackers.target_connections 8192\n"
      "fabric.nic.trackers.results 4\nfabric.nic.trackers.idle_ps 30000000\nfabric.nic.trackers.close_ps 2000000\n"
      "nic.retry.refused.handling_ps 20000000\nnic.retry.refused.at_once 3\nnic.retry.refused.pause_ps 70000000000\n"
      "nic.retry.refused.pause_max_ps 1000000000000\nnic.retry.refused.batch 4\n";
  Stand stand(machine);
  for (int n = 0; n < 5; ++n) stand.message(0, 2, 10'000);
  stand.engine.run(never);
  CHECK(stand.messages_received == 5);
  CHECK(stand.of(Counter::pct_no_trs_nacks, 0, 0) > 0);
  CHECK(stand.of(Counter::rh_nacks, 0, 0) ==
        stand.of(Counter::pct_no_trs_nacks, 0, 0) + stand.of(Counter::rh_nack_sequence_error, 0, 0));
  CHECK(stand.of(Counter::rh_nack_sequence_error) == stand.network.totals().trackers.sequence_refusals);
  CHECK(stand.of(Counter::pct_retry_srb_requests, 0, 0) == stand.of(Counter::rh_nacks, 0, 0));
  CHECK(stand.of(Counter::rh_sct_timeouts) == 0);
}

TEST_CASE("without faults what all have sent is what all have received, class by class and size by size") {
  Stand stand;
  talk(stand);
  stand.engine.run(never);
  CHECK(stand.messages_received == std::uint64_t{nics} * (nics - 1) * 4);
  for (std::size_t place = 0; place < 8; ++place) {
    CHECK(stand.of(Counter::hni_pkts_sent_by_tc, place) == stand.of(Counter::hni_pkts_recv_by_tc, place));
  }
  for (std::size_t place = 0; place < 12; ++place) {
    CHECK(stand.of(Counter::hni_tx_ok, place) == stand.of(Counter::hni_rx_ok, place));
  }
  CHECK(stand.of(Counter::hni_sts_tx_ok_octets) == stand.of(Counter::hni_sts_rx_ok_octets));
  CHECK(stand.of(Counter::hni_pkts_sent_by_tc, 4) > 0);
  CHECK(stand.of(Counter::hni_pcs_uncorrected_cw) == 0);
  // Each command of the DMA engine is one of its kinds.
  std::uint64_t commands = 0;
  for (std::size_t kind = 0; kind < 16; ++kind) commands += stand.of(Counter::cq_dma_cmd_counts, kind);
  CHECK(commands == stand.of(Counter::cq_num_dma_cmds));
  CHECK(stand.of(Counter::cq_dma_cmd_counts, 3) == std::uint64_t{nics} * (nics - 1));  // one rendezvous each
}

TEST_CASE("a NIC for whose packets the switch has no room counts the time, one that has room for all counts none") {
  fabric::SampleMachine machine;
  machine.management = "off";
  machine.input_buffer_bytes = 8448;  // four packets
  Stand crowded(machine);
  for (const std::uint32_t from : {1, 2, 3, 4}) crowded.message(from, 0, 1'000'000);
  crowded.engine.run(never);
  // Four send what one link carries, which the last of them ends with: together they have waited for about three
  // quarters of their time. Requests of best effort only: the data are answers, which travel as the same class.
  const std::uint64_t cycles = crowded.engine.now().ps / 1000;
  const std::uint64_t waited = crowded.of(Counter::hni_tx_paused);
  CHECK(waited > 2 * cycles);
  CHECK(waited < 4 * cycles);
  CHECK(crowded.of(Counter::hni_tx_paused, 0, 0) == 0);

  Stand alone;
  alone.message(1, 0, 1'000'000);
  alone.engine.run(never);
  CHECK(alone.of(Counter::hni_tx_paused) == 0);
}

// Two messages with a tenth of a second between them: there are 512 steps at most, so each lasts 128 us by then
// (100,000 us in 512 steps), of which each but the first and last has 128 us / 25.6 ns = 5,000 code words.
TEST_CASE("what grows with time alone grows in idle steps too") {
  Stand stand;
  CounterSeries series(stand.sources, Instant{0});
  stand.message(0, 2, 8);
  stand.engine.run(never);
  series.close_step(Instant{100'000 * us});
  series.finish(Instant{100'000 * us});
  std::vector<std::uint64_t> steps;
  for (const CounterStep& row : rows_of(series)) {
    if (row.of != 0 || row.what != static_cast<std::uint32_t>(Counter::hni_pcs_good_cw)) continue;
    steps.resize(row.step + std::size_t{1});
    steps[row.step] = row.grown;
  }
  REQUIRE(steps.size() > 256);
  const std::uint64_t in_step = series.step_end().ps / (steps.size() * 25'600);
  for (std::size_t step = 0; step + 1 < steps.size(); ++step) {
    CHECK(steps[step] + 1 >= in_step);
    CHECK(steps[step] <= in_step + 1);
  }
}

TEST_CASE("the series of a run adds up to what its NICs counted, and steps do not overlap") {
  fabric::SampleMachine machine;
  machine.management = "off";  // what switches tell sources of hot end-points are frames that no NIC has sent
  Stand stand(machine);
  CounterSeries series(stand.sources, Instant{0});
  stand.network.observe(&series.frames());
  talk(stand);
  while (stand.engine.next() != never) {
    const Instant end = series.step_end();
    if (stand.engine.next() < end) {
      stand.engine.run(end);
    } else {
      series.close_step(stand.engine.next());
    }
  }
  series.finish(stand.engine.now());
  const std::vector<CounterStep> rows = rows_of(series);
  std::vector<std::uint64_t> sums(counter_count + 2);
  std::uint32_t last_step = 0;
  for (const CounterStep& row : rows) {
    CHECK(row.step >= last_step);
    last_step = row.step;
    sums[row.what] += row.grown;
  }
  CHECK(last_step > 5);
  // Frames and bytes here were seen on the links, those of the totals follow from the sizes of transfers.
  for (std::size_t counter = 0; counter < counter_count; ++counter) {
    CAPTURE(counter_name(counter));
    CHECK(sums[counter] == stand.of(static_cast<Counter>(counter)));
  }
  CHECK(sums[counter_count + 1] > stand.of(Counter::hni_sts_tx_ok_octets));  // by more links than the NICs' own
}

}  // namespace dryfly
