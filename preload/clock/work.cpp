// What a program announces of its computing (include/dryfly/work.h) moves its virtual clock in
// wire::ComputeMode::model by the time that the machine takes for it.
//
// The time is that of a roof line: the latency of a call, and then the longer of the operations at the rate of the
// precision and the operands, each once, at the rate of the memory. So products with a thin side are bound by memory,
// and small ones by the latency. A rank has an even share of its node's processors and of its GPUs, or where it is
// bound its own cores and its share of the memory that it is bound to (conductor/places.hpp), and the work is done by
// whichever of the two is faster with it. Left out: moving operands between the two memories, a kernel's
// tiles that are not full, and that a GPU may compute while its rank does something else.
#include <stdint.h>

#include "preload/export.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

using Wide = unsigned __int128;
using wire::ComputePlace;

enum class Kind { product, triangular_solve, memory, arithmetic, end };  // as in dryfly/work.h

constexpr std::uint64_t element_bytes[wire::precision_count] = {8, 4, 2};
constexpr std::uint64_t side_max = std::uint64_t{1} << 24;  // of a matrix: all factors of a time stay in 128 bits
constexpr std::uint64_t count_max = std::uint64_t{1} << 60;
constexpr std::uint64_t ps_per_s = 1'000'000'000'000;

struct Amount {
  Wide operations;
  Wide bytes;
};

std::uint64_t side(std::int64_t value) {
  const auto size = static_cast<std::uint64_t>(value > 0 ? value : 0);
  return size < side_max ? size : side_max;
}

Amount amount_of(Kind kind, std::uint32_t precision, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  if (kind == Kind::memory || kind == Kind::arithmetic) {
    const auto given = static_cast<std::uint64_t>(rows > 0 ? rows : 0);
    const Wide count = given < count_max ? given : count_max;
    return kind == Kind::memory ? Amount{0, count} : Amount{count, 0};
  }
  const Wide m = side(rows), n = side(columns), k = side(depth), size = element_bytes[precision];
  if (kind == Kind::product) return {2 * m * n * k, m * n * k == 0 ? 0 : size * (m * k + k * n + 2 * m * n)};
  return {m * m * n, n == 0 || m == 0 ? 0 : size * (m * m / 2 + 2 * m * n)};
}

// Rounded up.
std::uint64_t time_on(const ComputePlace& place, const Amount& amount, std::uint32_t precision, std::uint32_t sharers) {
  const auto divided = [&](Wide work, std::uint64_t rate) { return (work * ps_per_s * sharers + rate - 1) / rate; };
  const Wide computing = divided(amount.operations, place.operations_per_s[precision]);
  const Wide moving = divided(amount.bytes, place.memory_bytes_per_s);
  const Wide longer = computing > moving ? computing : moving;
  constexpr Wide most = wire::far_future / 4;
  return place.latency_ps + static_cast<std::uint64_t>(longer < most ? longer : most);
}

bool is_modelled() { return phase() == Phase::running && dryfly_self.header->compute.mode == wire::ComputeMode::model; }

// Of the node's processors, what the rank has where somebody is bound.
std::uint64_t time_on_own(const ComputePlace& node, const wire::NodeShare& share, const Amount& amount,
                          std::uint32_t precision, std::uint32_t sharers) {
  if (share.counts == 0 || share.operations_ppb == 0) return time_on(node, amount, precision, sharers);
  ComputePlace own = node;
  constexpr Wide whole_ppb = 1'000'000'000;
  for (std::uint64_t& rate : own.operations_per_s) {
    rate = static_cast<std::uint64_t>(Wide{rate} * share.operations_ppb / whole_ppb);
    if (rate == 0) rate = 1;
  }
  own.memory_bytes_per_s = share.memory_bytes_per_s != 0 ? share.memory_bytes_per_s : node.memory_bytes_per_s / sharers;
  if (own.memory_bytes_per_s == 0) own.memory_bytes_per_s = 1;
  return time_on(own, amount, precision, 1);
}

void take(int kind, int precision, std::int64_t m, std::int64_t n, std::int64_t k, bool gpus_too) {
  if (!is_modelled() || !on_main_thread()) return;
  if (kind < 0 || kind >= static_cast<int>(Kind::end)) return;
  if (precision < 0 || precision >= static_cast<int>(wire::precision_count)) return;
  const auto width = static_cast<std::uint32_t>(precision);
  const Amount amount = amount_of(static_cast<Kind>(kind), width, m, n, k);
  if (amount.bytes == 0 && amount.operations == 0) return;
  const wire::SegmentHeader& header = *dryfly_self.header;
  const std::uint32_t sharers = dryfly_self.page->share.ranks_on_node;
  ComputePlace processors = header.compute.cpu;
  processors.memory_bytes_per_s =
      wire::SlowNode::less(processors.memory_bytes_per_s, dryfly_self.page->share.slow.memory_ppb);
  wire::NodeShare share = dryfly_self.page->share;
  share.memory_bytes_per_s = wire::SlowNode::less(share.memory_bytes_per_s, dryfly_self.page->share.slow.memory_ppb);
  std::uint64_t ps = time_on_own(processors, share, amount, width, sharers);
  if (gpus_too && header.compute.gpu.memory_bytes_per_s != 0) {
    const std::uint64_t on_gpu = time_on(header.compute.gpu, amount, width, sharers);
    // A core that others use as well is no slower for what the GPU does.
    const std::uint64_t turns = 1 + dryfly_self.others_on_core;
    if (on_gpu < ps * turns) ps = (on_gpu + turns - 1) / turns;
  }
  ++dryfly_self.page->times.announced_work;
  advance(ps);
}

}  // namespace

DRYFLY_EXPORT int dryfly_work_mode() {
  if (!is_modelled()) return 0;
  return dryfly_self.header->compute.numerics_skipped != 0 ? 2 : 1;
}

DRYFLY_EXPORT void dryfly_work(int kind, int precision, std::int64_t m, std::int64_t n, std::int64_t k) {
  take(kind, precision, m, n, k, true);
}

DRYFLY_EXPORT void dryfly_work_on_processor(int kind, int precision, std::int64_t m, std::int64_t n, std::int64_t k) {
  take(kind, precision, m, n, k, false);
}

}  // namespace dryfly::preload
