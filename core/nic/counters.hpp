// What a Cassini NIC counts, under the names by which its driver shows it (docs/model/counters.md#names): those of
// the counters that the model can justify. Each NIC with an end-point has its own.
//
// Frames and packets are counted for both NICs when the source NIC hands a transfer to the network, from its size:
// data frames carry one header each, and each is answered by one acknowledgement frame. Counters that the hardware
// keeps for four pools are all in pool 0. Packets by class follow profile 2 of the driver
// (docs/model/classes.md#classes-of-counters): requests of best effort are class 0, bulk data 2, low latency 4,
// Ethernet 6, and the answer to a class one more; dedicated access has the place it has in profile 1. Scavenger is
// not in the driver's profiles and counts as best effort.
//
// What only the network knows of a NIC (its link, its retries, its waits for credit) is added where counters are read
// (conductor/counter_sources.hpp).
//
// Left out: what depends on parts that are not modelled: docs/model/counters.md#left-out says which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/contract/network.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// The first of several stands for all of them, in the order of the names.
enum class Counter : std::uint8_t {
  hni_tx_ok,                                      // 12 sizes
  hni_rx_ok = hni_tx_ok + 12,                     // 12 sizes
  hni_pkts_sent_by_tc = hni_rx_ok + 12,           // 8 classes
  hni_pkts_recv_by_tc = hni_pkts_sent_by_tc + 8,  // 8 classes
  cq_num_dma_cmds = hni_pkts_recv_by_tc + 8,      // commands whose payload is fetched
  cq_num_idc_cmds,                                // commands with their payload inside
  lpe_append_cmds,                                // receives posted
  lpe_net_match_requests,                         // messages and RMA requests that came in
  lpe_net_match_priority,                         // found a posted receive, or memory
  lpe_net_match_overflow,                         // had to wait
  lpe_net_match_request,                          // went to software
  lpe_rndzv_puts,                                 // rendezvous requests that came in
  lpe_rndzv_puts_offloaded,                       // for which this NIC asked for the rest
  lpe_amo_cmds,                                   // atomics carried out here
  lpe_famo_cmds,                                  // those that fetch
  pct_req_ordered,                                // request packets sent, of ordered transfers
  pct_req_unordered,                              // and of unordered ones
  pct_responses_received,                         // answers to them: data, or acknowledgements
  pct_sct_timeouts,                               // network time-outs of ordered flows
  pct_spt_timeouts,                               // and of unordered packets
  rh_sct_timeouts,                                // the same as the retry handler counts them
  rh_spt_timeouts,
  pct_conn_sct_open,    // connections opened as their source
  pct_no_tct_nacks,     // request packets refused: the target had no entry for the connection
  pct_no_trs_nacks,     // or none for what becomes of the packet
  pct_no_matching_tct,  // or they came behind one that had found no entry

  hni_sts_tx_ok_octets,  // bytes of the frames above
  hni_sts_rx_ok_octets,
  cq_dma_cmd_counts,                       // 16 commands, see DmaCommand
  hni_rx_paused = cq_dma_cmd_counts + 16,  // 8 classes: cycles without a buffer for messages that have come
  hni_tx_paused = hni_rx_paused + 8,  // 8 classes: cycles in which the switch had no room for what there was to send
  parbs_tarb_pi_posted_blocked_cnt = hni_tx_paused + 8,  // cycles in which others had the way to memory
  parbs_tarb_pi_non_posted_blocked_cnt,                  // and the way from it

  pct_retry_srb_requests,    // request packets sent again
  rh_spt_timeouts_u,         // time-outs of unordered packets
  rh_nacks,                  // answers that refused a packet
  rh_nack_sequence_error,    // for it was out of sequence
  rh_connections_cancelled,  // ordered flows given up
  rh_pkts_cancelled_o,       // packets given up
  rh_pkts_cancelled_u,

  hni_llr_tx_replay_event,  // frames that the NIC's link sent again
  hni_llr_rx_replay_event,  // and that the switch's did
  hni_pcs_good_cw,          // code words that came in
  hni_pcs_uncorrected_cw,   // and that the code could not mend

  atu_client_req_oxe,                   // packets of payloads that leave and asked for their page's translation
  atu_client_req_ixe,                   // and of those that came
  atu_cache_hit_base_page_size,         // of both: was there, or asked for already
  atu_cache_hit_derivative1_page_size,  // the same of longer pages
  atu_cache_miss,                       // was not
  atu_cache_miss_oxe,                   // of those that leave
  atu_cache_miss_ixe,                   // and that came
  atu_cache_evictions,                  // lines that made room
  count,
};
inline constexpr std::size_t counter_count = static_cast<std::size_t>(Counter::count);

std::string_view counter_name(std::size_t index);

// The hardware counts times in cycles (docs/model/counters.md#cycles).
inline constexpr std::uint64_t cycle_ps = 1000;

// What the DMA engine is asked for, by the number of its command (docs/model/counters.md#commands).
enum class DmaCommand : std::uint8_t {
  put = 1,
  get = 2,
  rendezvous_put = 3,
  atomic = 4,
  fetching_atomic = 5,
  reduction = 13,
};

// Where the packets of a class are counted; their answers are one further.
std::size_t request_place(TrafficClass traffic_class);

struct NicCounters {
  NicId nic;
  std::array<std::uint64_t, counter_count> values{};

  void add(Counter counter, std::uint64_t times = 1) { values[static_cast<std::size_t>(counter)] += times; }
  void add(Counter first, std::size_t place, std::uint64_t times) {
    values[static_cast<std::size_t>(first) + place] += times;
  }
  void add_dma(DmaCommand command) {
    add(Counter::cq_num_dma_cmds);
    add(Counter::cq_dma_cmd_counts, static_cast<std::size_t>(command), 1);
  }
};

// Sizes on a link.
struct Framing {
  Bytes payload_max{2048};
  Bytes header{64};
  Bytes acknowledgement{35};

  // Of a payload: with the headers of its packets.
  constexpr Bytes on_link(Bytes payload) const {
    return {payload.count + (payload.count + payload_max.count - 1) / payload_max.count * header.count};
  }
};

// Where frames of that size are counted.
std::size_t frame_place(std::uint64_t bytes);

// A transfer, and whether it answers a request (a Get's data, a fetched value, the end of a rendezvous).
void count_transfer(NicCounters& source, NicCounters& target, const Transfer& transfer, bool answer,
                    const Framing& framing);

}  // namespace dryfly
