#include "core/nic/counters.hpp"

#include <bit>

#include "core/unit/check.hpp"

namespace dryfly {
namespace {

constexpr std::array<std::string_view, counter_count> names{"hni_tx_ok_27",
                                                            "hni_tx_ok_35",
                                                            "hni_tx_ok_36_to_63",
                                                            "hni_tx_ok_64",
                                                            "hni_tx_ok_65_to_127",
                                                            "hni_tx_ok_128_to_255",
                                                            "hni_tx_ok_256_to_511",
                                                            "hni_tx_ok_512_to_1023",
                                                            "hni_tx_ok_1024_to_2047",
                                                            "hni_tx_ok_2048_to_4095",
                                                            "hni_tx_ok_4096_to_8191",
                                                            "hni_tx_ok_8192_to_max",
                                                            "hni_rx_ok_27",
                                                            "hni_rx_ok_35",
                                                            "hni_rx_ok_36_to_63",
                                                            "hni_rx_ok_64",
                                                            "hni_rx_ok_65_to_127",
                                                            "hni_rx_ok_128_to_255",
                                                            "hni_rx_ok_256_to_511",
                                                            "hni_rx_ok_512_to_1023",
                                                            "hni_rx_ok_1024_to_2047",
                                                            "hni_rx_ok_2048_to_4095",
                                                            "hni_rx_ok_4096_to_8191",
                                                            "hni_rx_ok_8192_to_max",
                                                            "hni_pkts_sent_by_tc_0",
                                                            "hni_pkts_sent_by_tc_1",
                                                            "hni_pkts_sent_by_tc_2",
                                                            "hni_pkts_sent_by_tc_3",
                                                            "hni_pkts_sent_by_tc_4",
                                                            "hni_pkts_sent_by_tc_5",
                                                            "hni_pkts_sent_by_tc_6",
                                                            "hni_pkts_sent_by_tc_7",
                                                            "hni_pkts_recv_by_tc_0",
                                                            "hni_pkts_recv_by_tc_1",
                                                            "hni_pkts_recv_by_tc_2",
                                                            "hni_pkts_recv_by_tc_3",
                                                            "hni_pkts_recv_by_tc_4",
                                                            "hni_pkts_recv_by_tc_5",
                                                            "hni_pkts_recv_by_tc_6",
                                                            "hni_pkts_recv_by_tc_7",
                                                            "cq_num_dma_cmds_0",
                                                            "cq_num_idc_cmds_0",
                                                            "lpe_append_cmds_0",
                                                            "lpe_net_match_requests_0",
                                                            "lpe_net_match_priority_0",
                                                            "lpe_net_match_overflow_0",
                                                            "lpe_net_match_request_0",
                                                            "lpe_rndzv_puts_0",
                                                            "lpe_rndzv_puts_offloaded_0",
                                                            "lpe_amo_cmds",
                                                            "lpe_famo_cmds",
                                                            "pct_req_ordered",
                                                            "pct_req_unordered",
                                                            "pct_responses_received",
                                                            "pct_sct_timeouts",
                                                            "pct_spt_timeouts",
                                                            "rh:sct_timeouts",
                                                            "rh:spt_timeouts",
                                                            "pct_conn_sct_open",
                                                            "pct_no_tct_nacks",
                                                            "pct_no_trs_nacks",
                                                            "pct_no_matching_tct",
                                                            "hni_sts_tx_ok_octets",
                                                            "hni_sts_rx_ok_octets",
                                                            "cq_dma_cmd_counts_0",
                                                            "cq_dma_cmd_counts_1",
                                                            "cq_dma_cmd_counts_2",
                                                            "cq_dma_cmd_counts_3",
                                                            "cq_dma_cmd_counts_4",
                                                            "cq_dma_cmd_counts_5",
                                                            "cq_dma_cmd_counts_6",
                                                            "cq_dma_cmd_counts_7",
                                                            "cq_dma_cmd_counts_8",
                                                            "cq_dma_cmd_counts_9",
                                                            "cq_dma_cmd_counts_10",
                                                            "cq_dma_cmd_counts_11",
                                                            "cq_dma_cmd_counts_12",
                                                            "cq_dma_cmd_counts_13",
                                                            "cq_dma_cmd_counts_14",
                                                            "cq_dma_cmd_counts_15",
                                                            "hni_rx_paused_0",
                                                            "hni_rx_paused_1",
                                                            "hni_rx_paused_2",
                                                            "hni_rx_paused_3",
                                                            "hni_rx_paused_4",
                                                            "hni_rx_paused_5",
                                                            "hni_rx_paused_6",
                                                            "hni_rx_paused_7",
                                                            "hni_tx_paused_0",
                                                            "hni_tx_paused_1",
                                                            "hni_tx_paused_2",
                                                            "hni_tx_paused_3",
                                                            "hni_tx_paused_4",
                                                            "hni_tx_paused_5",
                                                            "hni_tx_paused_6",
                                                            "hni_tx_paused_7",
                                                            "parbs_tarb_pi_posted_blocked_cnt",
                                                            "parbs_tarb_pi_non_posted_blocked_cnt",
                                                            "pct_retry_srb_requests",
                                                            "rh:spt_timeouts_u",
                                                            "rh:nacks",
                                                            "rh:nack_sequence_error",
                                                            "rh:connections_cancelled",
                                                            "rh:pkts_cancelled_o",
                                                            "rh:pkts_cancelled_u",
                                                            "hni_llr_tx_replay_event",
                                                            "hni_llr_rx_replay_event",
                                                            "hni_pcs_good_cw",
                                                            "hni_pcs_uncorrected_cw",
                                                            "atu_client_req_oxe",
                                                            "atu_client_req_ixe",
                                                            "atu_cache_hit_base_page_size_0",
                                                            "atu_cache_hit_derivative1_page_size_0",
                                                            "atu_cache_miss_0",
                                                            "atu_cache_miss_oxe",
                                                            "atu_cache_miss_ixe",
                                                            "atu_cache_evictions"};
static_assert(!names.back().empty());

}  // namespace

// 27, 35, 36 to 63, 64, 65 to 127, 128 to 255, and so on to 8192 and more.
std::size_t frame_place(std::uint64_t bytes) {
  if (bytes <= 27) return 0;
  if (bytes <= 35) return 1;
  if (bytes < 64) return 2;
  if (bytes == 64) return 3;
  constexpr std::size_t last = 11;
  const auto place = static_cast<std::size_t>(std::bit_width(bytes)) - 3;  // 65 to 127 have 7 bits
  return place < last ? place : last;
}

std::size_t request_place(TrafficClass traffic_class) {
  switch (traffic_class) {
    case TrafficClass::bulk_data:
      return 2;
    case TrafficClass::low_latency:
      return 4;
    case TrafficClass::ethernet:
    case TrafficClass::dedicated:
      return 6;
    case TrafficClass::best_effort:
    case TrafficClass::scavenger:
      return 0;
  }
  DRYFLY_UNREACHABLE("a traffic class");
}

std::string_view counter_name(std::size_t index) {
  DRYFLY_CHECK(index < counter_count);
  return names[index];
}

void count_transfer(NicCounters& source, NicCounters& target, const Transfer& transfer, bool answer,
                    const Framing& framing) {
  const std::uint64_t full = transfer.size.count / framing.payload_max.count;
  const std::uint64_t rest = transfer.size.count % framing.payload_max.count;
  const std::uint64_t short_ones = rest > 0 || full == 0 ? 1 : 0;
  const std::uint64_t packets = full + short_ones;
  const std::size_t short_bin = frame_place(rest + framing.header.count);
  const std::size_t answer_bin = frame_place(framing.acknowledgement.count);
  if (full != 0) {
    const std::size_t full_bin = frame_place((framing.payload_max + framing.header).count);
    source.add(Counter::hni_tx_ok, full_bin, full);
    target.add(Counter::hni_rx_ok, full_bin, full);
  }
  source.add(Counter::hni_tx_ok, short_bin, short_ones);
  source.add(Counter::hni_rx_ok, answer_bin, packets);
  target.add(Counter::hni_rx_ok, short_bin, short_ones);
  target.add(Counter::hni_tx_ok, answer_bin, packets);

  const std::uint64_t octets = transfer.size.count + packets * framing.header.count;
  const std::uint64_t answer_octets = packets * framing.acknowledgement.count;
  source.add(Counter::hni_sts_tx_ok_octets, octets);
  source.add(Counter::hni_sts_rx_ok_octets, answer_octets);
  target.add(Counter::hni_sts_rx_ok_octets, octets);
  target.add(Counter::hni_sts_tx_ok_octets, answer_octets);

  const std::size_t place = request_place(transfer.traffic_class) + (answer ? 1 : 0);
  source.add(Counter::hni_pkts_sent_by_tc, place, packets);
  target.add(Counter::hni_pkts_recv_by_tc, place, packets);
  if (answer) {
    target.add(Counter::pct_responses_received, packets);
  } else {
    source.add(transfer.ordered ? Counter::pct_req_ordered : Counter::pct_req_unordered, packets);
    source.add(Counter::pct_responses_received, packets);
  }
}

}  // namespace dryfly
