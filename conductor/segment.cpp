#include "conductor/segment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <new>
#include <string>
#include <system_error>

#include "conductor/service_settings.hpp"
#include "core/host/cpu_costs.hpp"
#include "core/host/noise_settings.hpp"
#include "core/memory/moved.hpp"
#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"
#include "core/spec/slow_parts.hpp"
#include "rank/node_accounts.hpp"

namespace dryfly {

namespace {

static_assert(fields::run_ranks.most == wire::rank_count_max);
static_assert(fields::nic_inline_bytes.most == wire::inline_bytes_max);

constexpr std::uint32_t ring_bytes = 64 * 1024;
constexpr std::uint64_t page_bytes = 4096;
// MPICH's entries are 32 KiB apart (rank/common_table.hpp), its first requests take 2.3 MiB. Untouched it costs
// nothing.
constexpr std::uint64_t table_bytes_per_rank = wire::common_copies * 64 * 1024;
constexpr std::uint64_t request_bytes = wire::common_copies * 8 * 1024 * 1024;
// What is under way at once in MPICH's alltoall of 4 KiB, which starts 32 sends at a time: while the last of them are
// still to be read the next have been written. Where ranks are many, what all of them together map is what costs
// (docs/decision/0009).
constexpr std::uint64_t ahead_bytes_per_rank = 192 * 1024;
constexpr std::uint64_t ahead_bytes_mapped = 256 * 256 * ahead_bytes_per_rank;
constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which older headers do not name, and older kernels refuse

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// Field by field: a rank's library includes nothing of the core.
wire::HostCosts host_costs(const Spec& spec) {
  static_assert(sizeof(wire::HostCosts) == sizeof(CpuCosts) + sizeof(wire::RegistrationCosts));
  const CpuCosts costs = CpuCosts::read(spec);
  return {.send_ps = costs.send.ps,
          .send_fetched_ps = costs.send_fetched.ps,
          .receive_ps = costs.receive.ps,
          .rma_ps = costs.rma.ps,
          .rma_fetched_ps = costs.rma_fetched.ps,
          .completion_ps = costs.completion.ps,
          .sent_ps = costs.sent.ps,
          .received_ps = costs.received.ps,
          .poll_ps = costs.poll.ps,
          .clock_read_ps = costs.clock_read.ps,
          .match_ps = costs.match.ps,
          .wake_ps = costs.wake.ps,
          .buffer_ps = costs.buffer.ps,
          .gpu_buffer_ps = costs.gpu_buffer.ps};
}

// None of it where nobody asks for it.
wire::RegistrationCosts registration_costs(const Spec& spec) {
  if (!spec.is_on(fields::nic_registration)) return {};
  const auto cost = [&](const NumberField& field) { return spec.has(field) ? spec.number(field) : 0; };
  return {.map_ps = cost(fields::host_registration_map_ps),
          .map_page_ps = cost(fields::host_registration_map_page_ps),
          .unmap_ps = cost(fields::host_registration_unmap_ps),
          .unmap_page_ps = cost(fields::host_registration_unmap_page_ps),
          .watch_ps = cost(fields::host_registration_watch_ps),
          .link_ps = cost(fields::host_registration_link_ps),
          .fault_ps = cost(fields::host_registration_fault_ps),
          .page_bytes = spec.number(fields::node_page_bytes),
          .translates = std::uint64_t{spec.is_on(fields::nic_ats)},
          .names_pages = std::uint64_t{spec.is_on(fields::nic_translation)}};
}

// What attaching another process's memory costs.
wire::RegistrationCosts attaching_costs(const Spec& spec) {
  if (!spec.has(fields::node_xpmem_attach_ps)) return {};
  return {.map_ps = spec.number(fields::node_xpmem_attach_ps),
          .map_page_ps = spec.number(fields::node_xpmem_page_ps),
          .page_bytes = spec.has(fields::node_page_bytes) ? spec.number(fields::node_page_bytes) : page_bytes};
}

wire::ComputeMode compute_mode(const Spec& spec) {
  const auto& text = spec.text(fields::host_compute_mode);
  if (text == "none") return wire::ComputeMode::none;
  if (text == "measured") return wire::ComputeMode::measured;
  if (text == "replay") return wire::ComputeMode::replay;
  return wire::ComputeMode::model;
}

wire::ComputePlace compute_cpu(const Spec& spec) {
  return {.latency_ps = spec.number(fields::compute_cpu_latency_ps),
          .memory_bytes_per_s = spec.number(fields::compute_cpu_memory_bytes_per_s),
          .operations_per_s = {spec.number(fields::compute_cpu_fp64_per_s), spec.number(fields::compute_cpu_fp32_per_s),
                               spec.number(fields::compute_cpu_half_per_s)}};
}

// A node may have none.
wire::ComputePlace compute_gpu(const Spec& spec) {
  if (!spec.has(fields::compute_gpu_fp64_per_s)) return {};
  return {.latency_ps = spec.number(fields::compute_gpu_latency_ps),
          .memory_bytes_per_s = spec.number(fields::compute_gpu_memory_bytes_per_s),
          .operations_per_s = {spec.number(fields::compute_gpu_fp64_per_s), spec.number(fields::compute_gpu_fp32_per_s),
                               spec.number(fields::compute_gpu_half_per_s)}};
}

struct NodeOfJob {
  std::uint32_t ranks = 0;
  std::uint32_t place = 0;  // among the job's nodes
};

// By the number of the node.
std::map<std::uint64_t, NodeOfJob> nodes_of(const Spec& spec, std::uint32_t ranks) {
  std::map<std::uint64_t, NodeOfJob> nodes;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) ++nodes[spec.number(fields::run_rank_node, {rank})].ranks;
  std::uint32_t place = 0;
  for (auto& [number, node] : nodes) node.place = place++;
  return nodes;
}

std::uint32_t most_ranks(const std::map<std::uint64_t, NodeOfJob>& nodes) {
  std::uint32_t most = 0;
  for (const auto& [number, node] : nodes) most = std::max(most, node.ranks);
  return most;
}

wire::SlowNode slow_node(const SlowParts& slow, NodeId node) {
  const auto left = [&](const std::map<NodeId, std::uint64_t>& parts) {
    const std::uint64_t share = SlowParts::share_of(parts, node);
    return share == SlowParts::whole_ppb ? 0 : share;
  };
  return {.cpu_ppb = left(slow.cpus), .memory_ppb = left(slow.memories)};
}

// `ranks`: the most that a node has.
wire::CopyCosts copy_costs(const Spec& spec, std::uint64_t accounts_offset, std::uint32_t ranks) {
  const NodeMemorySpec memory = node_memory_spec(spec);
  const auto domains = static_cast<std::uint32_t>(std::min<std::size_t>(memory.domains.size(), wire::domains_max));
  wire::CopyCosts costs{
      .ps = memory.copy.ps,
      .ps_per_kib = wire::picoseconds_per_kib(memory.copy_rate.bytes_per_s),
      .cached = memory.cached.count,
      .cross_ps = memory.cross_copy.ps,
      .attaching = attaching_costs(spec),
      .room = MovedMemory::room(memory.rate.bytes_per_s),
      .accounts_offset = accounts_offset,
      .accounts_bytes = round_up(
          rank::NodeAccounts::bytes(
              {.domains = domains, .sockets = memory.near.sockets(), .regions = memory.near.limited_regions()}, ranks),
          page_bytes),
      .domains = domains,
      .sockets = memory.near.sockets(),
      .regions = memory.near.limited_regions()};
  if (memory.link_rate.bytes_per_s != 0) costs.nic_ps_per_kib = wire::picoseconds_per_kib(memory.link_rate.bytes_per_s);
  if (!memory.near.is_known()) return costs;
  costs.crossing_room = MovedMemory::room(memory.socket_rate.bytes_per_s);
  costs.into_region_room = MovedMemory::room(memory.near.into_region().bytes_per_s);
  costs.out_of_region_room = MovedMemory::room(memory.near.out_of_region().bytes_per_s);
  for (std::uint32_t domain = 0; domain < domains; ++domain) {
    costs.domain_room[domain] = MovedMemory::room(memory.domains[domain].bytes_per_s);
  }
  costs.own_cached = memory.near.own().count;
  costs.own_ps_per_kib = wire::picoseconds_per_kib(memory.near.own_rate().bytes_per_s);
  static_assert(wire::distance_count == Nearness::distances);
  for (std::size_t distance = 0; distance < Nearness::distances; ++distance) {
    const Nearness::Way& way = memory.near.way(distance);
    costs.cached_ps_per_kib[distance] = wire::picoseconds_per_kib(way.cached.bytes_per_s);
    costs.copied_ps_per_kib[distance] = wire::picoseconds_per_kib(way.memory.bytes_per_s);
  }
  return costs;
}

wire::ComputeSettings compute_settings(const Spec& spec) {
  wire::ComputeSettings compute{};
  compute.mode = compute_mode(spec);
  compute.factor_ppm = spec.small(fields::host_compute_factor_ppm);
  if (compute.mode != wire::ComputeMode::model) return compute;
  compute.cpu = compute_cpu(spec);
  compute.gpu = compute_gpu(spec);
  compute.numerics_skipped = spec.small(fields::compute_numerics_skipped);
  return compute;
}

}  // namespace

Segment::Segment(const Spec& spec) {
  const auto ranks = spec.small(fields::run_ranks);
  const std::uint64_t arena_bytes = round_up(spec.number(fields::run_arena_bytes), page_bytes);
  const std::uint64_t header_bytes = round_up(sizeof(wire::SegmentHeader), page_bytes);
  const std::uint64_t stride = round_up(sizeof(wire::RankPage) + 2 * std::uint64_t{ring_bytes}, page_bytes);
  const std::uint64_t states_offset = header_bytes + stride * ranks;
  const std::uint64_t granules = round_up(arena_bytes / wire::arena_granule, page_bytes);
  const std::uint64_t links_offset = states_offset + granules;
  const std::uint64_t arena_offset = links_offset + granules * sizeof(std::uint64_t);
  const std::uint64_t table_bytes = table_bytes_per_rank * ranks;
  const bool nodes_share_memory = spec.text(fields::run_on_node) == "shared";
  const std::map<std::uint64_t, NodeOfJob> nodes = nodes_of(spec, ranks);
  const std::uint64_t accounts_offset = arena_offset + arena_bytes + table_bytes + request_bytes;
  const wire::CopyCosts copies = copy_costs(spec, accounts_offset, most_ranks(nodes));
  const wire::ServiceSettings service =
      service_settings(spec, accounts_offset + (nodes_share_memory ? copies.accounts_bytes * nodes.size() : 0));
  bytes_ = service.use_offset + round_up(service_use_bytes(service) * nodes.size(), page_bytes);

  descriptor_ = memfd_create("dryfly-run", MFD_CLOEXEC);
  if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) {
    throw std::system_error(errno, std::generic_category(), "shared segment");
  }
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (mapped == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "shared segment");
  base_ = static_cast<char*>(mapped);

  auto* head = new (base_) wire::SegmentHeader{};
  head->magic = wire::segment_magic;
  head->version = wire::version;
  head->rank_count = ranks;
  head->segment_bytes = bytes_;
  head->rank_area_offset = header_bytes;
  head->rank_area_stride = stride;
  head->arena.offset = arena_offset;
  head->arena.bytes = arena_bytes;
  head->arena.states_offset = states_offset;
  head->arena.links_offset = links_offset;
  head->table.offset = arena_offset + arena_bytes;
  head->table.bytes = table_bytes;
  head->requests.offset = head->table.offset + table_bytes;
  head->requests.bytes = request_bytes;
  head->command_ring_bytes = ring_bytes;
  head->event_ring_bytes = ring_bytes;
  head->costs = host_costs(spec);
  head->costs.registration = registration_costs(spec);
  head->noise = read_noise(spec);
  head->compute = compute_settings(spec);
  head->inline_max = spec.small(fields::nic_inline_bytes);
  head->eager_max = spec.small(fields::nic_eager_bytes);
  head->nodes_share_memory = nodes_share_memory ? 1 : 0;
  head->copies = copies;
  head->service = service;
  head->cross_memory_allowed = spec.small(fields::run_cross_memory);
  head->served = spec.has(fields::run_served) ? 1 : 0;
  head->arena_top.store(arena_offset);
  if (head->served == 0)
    head->arena.ahead_bytes = std::min({ranks * ahead_bytes_per_rank, ahead_bytes_mapped / ranks, arena_bytes});
  madvise(base_ + states_offset, head->arena.ahead_bytes / wire::arena_granule, populate_write);
  madvise(base_ + arena_offset, head->arena.ahead_bytes, populate_write);
  const SlowParts slow = SlowParts::read(spec);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    auto& fresh = page(RankId{rank});  // zeros, as the kernel gave them
    fresh.notify_at_ps.store(wire::far_future);
    fresh.notify_copies.store(wire::far_future);
    fresh.progress.looks_for_ps.store(wire::far_future);
    const NodeOfJob& node = nodes.at(spec.number(fields::run_rank_node, {rank}));
    fresh.share.ranks_on_node = node.ranks;
    fresh.share.node_of_job = node.place;
    fresh.share.slow = slow_node(slow, NodeId{spec.small(fields::run_rank_node, {rank})});
  }
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace dryfly
