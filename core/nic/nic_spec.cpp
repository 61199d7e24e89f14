#include "core/nic/nic_spec.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "core/spec/fields.hpp"
#include "core/spec/slow_parts.hpp"

namespace dryfly {

namespace {

Duration duration(const Spec& spec, const NumberField& field) { return {spec.number(field)}; }

std::uint32_t log2_of(std::uint64_t bytes) { return static_cast<std::uint32_t>(std::bit_width(bytes)) - 1; }

GpuCopies gpu_copies(const Spec& spec) {
  if (!spec.has(fields::node_gpus)) return {};
  const std::size_t places = 1 + spec.number(fields::node_gpus);
  std::vector<std::vector<Rate>> rates(places, std::vector<Rate>(places));
  for (std::size_t one = 0; one < places; ++one) {
    for (std::size_t other = std::max<std::size_t>(one, 1); other < places; ++other) {
      rates[one][other] = Rate{spec.number(fields::node_gpu_copy_bytes_per_s, {one, other})};
    }
  }
  return {duration(spec, fields::node_gpu_copy_ps), duration(spec, fields::node_gpu_local_ps), std::move(rates)};
}

// Names of pages come with registering (conductor/segment.cpp), without which nothing is looked up.
TranslationSpec translation_spec(const Spec& spec) {
  if (!spec.is_on(fields::nic_translation) || !spec.is_on(fields::nic_registration)) return {};
  return {.lines = spec.number(fields::nic_atu_lines),
          .span_shift = log2_of(spec.number(fields::nic_atu_pages)),
          .walks = spec.small(fields::nic_atu_walks),
          .read = duration(spec, fields::nic_atu_read_ps),
          .ask = duration(spec, fields::nic_atu_ask_ps),
          .page_shift = log2_of(spec.number(fields::node_page_bytes))};
}

std::vector<Rate> domain_rates(const Spec& spec) {
  std::vector<Rate> rates;
  const std::uint64_t count = spec.has(fields::node_domains) ? spec.number(fields::node_domains) : 0;
  for (std::uint64_t number = 0; number < count; ++number) {
    const bool known = spec.has(fields::node_domain_rate_bytes_per_s, {number});
    rates.push_back(known ? Rate{spec.number(fields::node_domain_rate_bytes_per_s, {number})} : Rate{});
  }
  return rates;
}

// Of the ranks that the spec says the nodes of.
std::uint32_t most_ranks_of_a_node(const Spec& spec) {
  std::map<std::uint64_t, std::uint32_t> ranks_of;
  std::uint32_t most = 0;
  for (std::uint64_t rank = 0; spec.has(fields::run_rank_node, {rank}); ++rank) {
    most = std::max(most, ++ranks_of[spec.number(fields::run_rank_node, {rank})]);
  }
  return most;
}

nic::GetQueueSpec get_queue_spec(const Spec& spec, Bytes packet) {
  nic::GetQueueSpec result;
  if (spec.has(fields::nic_rendezvous_queues)) result.of_rendezvous = spec.small(fields::nic_rendezvous_queues);
  if (spec.has(fields::nic_read_queues)) result.of_reads = spec.small(fields::nic_read_queues);
  if (spec.has(fields::fabric_nic_window_packets)) {
    result.window = Bytes{packet.count * spec.number(fields::fabric_nic_window_packets)};
  }
  result.packet = packet;
  return result;
}

}  // namespace

NodeMemorySpec node_memory_spec(const Spec& spec) {
  NodeMemorySpec result;
  result.copy = duration(spec, fields::node_copy_ps);
  result.copy_rate = Rate{spec.number(fields::node_local_rate_bytes_per_s)};
  result.near = Nearness::read(spec);
  result.cached = result.near.cached(result.near.is_known() ? most_ranks_of_a_node(spec) : 0);
  if (spec.has(fields::node_cross_copy_ps)) result.cross_copy = duration(spec, fields::node_cross_copy_ps);
  if (spec.has(fields::node_socket_rate_bytes_per_s)) {
    result.socket_rate = Rate{spec.number(fields::node_socket_rate_bytes_per_s)};
  }
  if (spec.has(fields::node_memory_rate_bytes_per_s)) {
    result.rate = Rate{spec.number(fields::node_memory_rate_bytes_per_s)};
  }
  if (spec.has(fields::fabric_link_rate_bytes_per_s)) {
    result.link_rate = Rate{spec.number(fields::fabric_link_rate_bytes_per_s)};
  }
  result.domains = domain_rates(spec);
  result.slow = SlowParts::read(spec).memories;
  result.gpus = gpu_copies(spec);
  return result;
}

NicSpec nic_spec(const Spec& spec) {
  NicSpec result;
  result.eager_max = Bytes{spec.number(fields::nic_eager_bytes)};
  result.inline_max = Bytes{spec.number_between(0, result.eager_max.count, fields::nic_inline_bytes)};
  result.pushed_max = Bytes{spec.number_between(0, result.inline_max.count, fields::nic_pushed_bytes)};
  result.rendezvous_head = Bytes{spec.number_between(0, result.eager_max.count, fields::nic_rendezvous_head_bytes)};
  result.egress_latency = duration(spec, fields::nic_egress_latency_ps);
  result.dma_read_latency = duration(spec, fields::nic_dma_read_latency_ps);
  result.ingress_latency = duration(spec, fields::nic_ingress_latency_ps);
  if (spec.has(fields::nic_reduction_latency_ps))
    result.reduction_latency = duration(spec, fields::nic_reduction_latency_ps);
  result.command_interval = duration(spec, fields::nic_command_interval_ps);
  result.memory = node_memory_spec(spec);
  const std::uint64_t entries = spec.number(fields::nic_list_entries);
  const std::uint64_t share_ppm = spec.number(fields::nic_list_entries_share_ppm);
  result.list_entries = static_cast<std::uint32_t>(entries * share_ppm / 1'000'000);
  if (spec.has(fields::nic_rendezvous_get)) result.gets_by_nic = spec.text(fields::nic_rendezvous_get) == "on";
  result.rendezvous_latency = spec.has(fields::nic_rendezvous_latency_ps)
                                  ? duration(spec, fields::nic_rendezvous_latency_ps)
                                  : result.egress_latency;
  result.framing.payload_max = Bytes{spec.number(fields::fabric_packet_payload_bytes)};
  result.framing.header = Bytes{spec.number(fields::fabric_packet_header_bytes)};
  result.framing.acknowledgement = Bytes{spec.number(fields::fabric_packet_ack_bytes)};
  if (spec.has(fields::nic_answer_gap_ps)) {
    result.answering = {.gap = duration(spec, fields::nic_answer_gap_ps),
                        .rate = Rate{spec.number(fields::fabric_link_rate_bytes_per_s)},
                        .framing = result.framing};
  }
  result.get_queues = get_queue_spec(spec, result.framing.payload_max);
  if (spec.has(fields::node_socket_latency_ps)) result.socket_latency = duration(spec, fields::node_socket_latency_ps);
  if (spec.has(fields::node_pcie_rate_bytes_per_s)) {
    result.pcie_rate = Rate{spec.number(fields::node_pcie_rate_bytes_per_s)};
  }
  if (spec.has(fields::node_socket_rate_bytes_per_s)) {
    result.socket_rate = Rate{spec.number(fields::node_socket_rate_bytes_per_s)};
  }
  if (spec.has(fields::node_gpu_link_bytes_per_s)) {
    result.gpu_link = Rate{spec.number(fields::node_gpu_link_bytes_per_s)};
  }
  const SlowParts slow = SlowParts::read(spec);
  if (spec.has(fields::node_gpus)) {
    result.gpus = spec.small(fields::node_gpus);
    if (spec.has(fields::node_gpu_tiles)) result.gpu_tiles = spec.small(fields::node_gpu_tiles);
    result.slow_gpus = slow.gpus;
  }
  const std::uint64_t limits =
      result.pcie_rate.bytes_per_s | result.socket_rate.bytes_per_s | result.gpu_link.bytes_per_s;
  result.translation = translation_spec(spec);
  if (limits != 0 || !slow.nics.empty() || result.translation.lines != 0) {
    result.link_rate = Rate{spec.number(fields::fabric_link_rate_bytes_per_s)};
  }
  for (const auto& [nic, share] : slow.nics) result.slow_nics[nic] = SlowParts::of(result.link_rate, share);
  return result;
}

std::vector<std::uint32_t> nic_sockets(const Spec& spec) {
  std::vector<std::uint32_t> sockets;
  const std::uint64_t nics = spec.has(fields::node_nics) ? spec.number(fields::node_nics) : 0;
  for (std::uint64_t nic = 0; nic < nics; ++nic) {
    sockets.push_back(spec.small(fields::node_nic_socket, {nic}));
  }
  return sockets;
}

std::vector<std::uint8_t> nic_gpus(const Spec& spec) {
  std::vector<std::uint8_t> gpus;
  while (spec.has(fields::node_nic_gpu, {gpus.size()})) {
    gpus.push_back(static_cast<std::uint8_t>(spec.number(fields::node_nic_gpu, {gpus.size()})));
  }
  return gpus;
}

}  // namespace dryfly
