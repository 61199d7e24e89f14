#include "conductor/segment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <new>
#include <string>
#include <system_error>

namespace dryfly {

namespace {

constexpr std::uint32_t ring_bytes = 64 * 1024;
constexpr std::uint64_t page_bytes = 4096;
// MPICH's entries are 32 KiB apart (wire/common_table.hpp), its first requests take 2.3 MiB. Untouched it costs
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

wire::HostCosts host_costs(const Spec& spec) {
  return {.send_ps = spec.number("host.send_ps"),
          .receive_ps = spec.number("host.receive_ps"),
          .rma_ps = spec.number("host.rma_ps"),
          .completion_ps = spec.number("host.completion_ps"),
          .poll_ps = spec.number("host.poll_ps"),
          .clock_read_ps = spec.number("host.clock_read_ps"),
          .match_ps = spec.number("host.match_ps")};
}

std::uint64_t picoseconds_per_kib(std::uint64_t bytes_per_s) {
  constexpr std::uint64_t kib_ps = 1024 * 1'000'000'000'000;
  return kib_ps / bytes_per_s;
}

wire::ComputeMode compute_mode(const Spec& spec) {
  const auto& text = spec.text("host.compute_mode");
  if (text == "none") return wire::ComputeMode::none;
  if (text == "measured") return wire::ComputeMode::measured;
  if (text == "replay") return wire::ComputeMode::replay;
  if (text == "model") return wire::ComputeMode::model;
  throw SpecError("host.compute_mode = `" + text + "`: accepted are none, measured, replay and model");
}

wire::ComputePlace compute_place(const Spec& spec, const std::string& name) {
  const std::string prefix = "compute." + name + ".";
  if (!spec.has(prefix + "fp64_per_s")) return {};
  return {.latency_ps = spec.number(prefix + "latency_ps"),
          .memory_bytes_per_s = spec.number_in(prefix + "memory_bytes_per_s", 1, ~std::uint64_t{0}),
          .operations_per_s = {spec.number_in(prefix + "fp64_per_s", 1, ~std::uint64_t{0}),
                               spec.number_in(prefix + "fp32_per_s", 1, ~std::uint64_t{0}),
                               spec.number_in(prefix + "half_per_s", 1, ~std::uint64_t{0})}};
}

std::map<std::uint64_t, std::uint32_t> ranks_by_node(const Spec& spec, std::uint32_t ranks) {
  std::map<std::uint64_t, std::uint32_t> count;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) ++count[spec.number("run.rank." + std::to_string(rank) + ".node")];
  return count;
}

}  // namespace

Segment::Segment(const Spec& spec) {
  const auto ranks = static_cast<std::uint32_t>(spec.number_in("run.ranks", 1, wire::rank_count_max));
  const std::uint64_t arena_bytes = round_up(spec.number_in("run.arena_bytes", 1 << 20, 1ULL << 46), page_bytes);
  const std::uint64_t header_bytes = round_up(sizeof(wire::SegmentHeader), page_bytes);
  const std::uint64_t stride = round_up(sizeof(wire::RankPage) + 2 * std::uint64_t{ring_bytes}, page_bytes);
  const std::uint64_t states_offset = header_bytes + stride * ranks;
  const std::uint64_t granules = round_up(arena_bytes / wire::arena_granule, page_bytes);
  const std::uint64_t links_offset = states_offset + granules;
  const std::uint64_t arena_offset = links_offset + granules * sizeof(std::uint64_t);
  const std::uint64_t table_bytes = table_bytes_per_rank * ranks;
  bytes_ = arena_offset + arena_bytes + table_bytes + request_bytes;

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
  head->arena_offset = arena_offset;
  head->arena_bytes = arena_bytes;
  head->arena_states_offset = states_offset;
  head->arena_links_offset = links_offset;
  head->table.offset = arena_offset + arena_bytes;
  head->table.bytes = table_bytes;
  head->requests.offset = head->table.offset + table_bytes;
  head->requests.bytes = request_bytes;
  head->command_ring_bytes = ring_bytes;
  head->event_ring_bytes = ring_bytes;
  head->costs = host_costs(spec);
  head->compute_mode = compute_mode(spec);
  if (head->compute_mode == wire::ComputeMode::model) {
    head->cpu = compute_place(spec, "cpu");
    head->gpu = compute_place(spec, "gpu");
    head->numerics_skipped = static_cast<std::uint32_t>(spec.number_in("compute.numerics_skipped", 0, 1));
  }
  head->compute_factor_ppm = static_cast<std::uint32_t>(spec.number_in("host.compute_factor_ppm", 0, 0xffffffffU));
  head->compute_threshold_ns = spec.number("host.compute_threshold_ns");
  head->inline_max = static_cast<std::uint32_t>(spec.number_in("nic.inline_bytes", 0, wire::inline_bytes_max));
  head->eager_max = static_cast<std::uint32_t>(spec.number_in("nic.eager_bytes", 0, 0xffffffffU));
  const std::string& on_node = spec.text("run.on_node");
  if (on_node != "shared" && on_node != "provider") {
    throw SpecError("run.on_node = `" + on_node + "`: accepted are provider and shared");
  }
  head->nodes_share_memory = on_node == "shared" ? 1 : 0;
  head->copy_ps = spec.number("node.copy_ps");
  head->copy_ps_per_kib = picoseconds_per_kib(spec.number_in("node.local_rate_bytes_per_s", 1, UINT64_MAX));
  head->cross_memory_allowed = static_cast<std::uint32_t>(spec.number_in("run.cross_memory", 0, 1));
  head->served = spec.has("run.served") ? 1 : 0;
  head->arena_top.store(arena_offset);
  if (head->served == 0)
    head->arena_ahead_bytes = std::min({ranks * ahead_bytes_per_rank, ahead_bytes_mapped / ranks, arena_bytes});
  madvise(base_ + states_offset, head->arena_ahead_bytes / wire::arena_granule, populate_write);
  madvise(base_ + arena_offset, head->arena_ahead_bytes, populate_write);
  const auto sharers = head->compute_mode == wire::ComputeMode::model ? ranks_by_node(spec, ranks)
                                                                      : std::map<std::uint64_t, std::uint32_t>{};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    auto& fresh = page(RankId{rank});  // zeros, as the kernel gave them
    fresh.notify_at_ps.store(wire::far_future);
    fresh.notify_copies.store(wire::far_future);
    if (!sharers.empty()) fresh.ranks_on_node = sharers.at(spec.number("run.rank." + std::to_string(rank) + ".node"));
  }
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace dryfly
