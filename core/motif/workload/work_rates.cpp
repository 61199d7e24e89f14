#include "core/motif/workload/work_rates.hpp"

#include <algorithm>
#include <cmath>

#include "core/spec/fields.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t element_bytes[] = {8, 4, 2};
constexpr std::uint64_t ps_per_s = 1'000'000'000'000;

// Of a node, where a rank's own share is no more than its NUMA domain carries.
std::uint64_t cpu_memory(const Spec& spec, std::uint64_t ranks_per_node) {
  const std::uint64_t node = spec.number(fields::compute_cpu_memory_bytes_per_s);
  if (!spec.has(fields::node_domain_rate_bytes_per_s, {0})) return node;
  return std::min(node, spec.number(fields::node_domain_rate_bytes_per_s, {0}) * ranks_per_node);
}

std::uint64_t divided_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

}  // namespace

WorkRates::WorkRates(const Spec& spec, std::uint32_t ranks_per_node, const ProductShape& shape, Where where)
    : cpu_(read_cpu(spec, ranks_per_node)),
      gpu_(read_gpu(spec)),
      sharers_(ranks_per_node),
      shape_(shape),
      where_(where) {
  if (where_ == Where::gpu && gpu_.memory_bytes_per_s == 0) {
    throw SpecError("computing on GPUs was asked for: this machine has no compute.gpu; accepted is cpu");
  }
}

WorkRates::Place WorkRates::read_cpu(const Spec& spec, std::uint64_t ranks_per_node) {
  if (!spec.has(fields::compute_cpu_fp64_per_s)) {
    throw SpecError("compute.cpu.fp64_per_s is missing: accepted is a spec of `--compute model`");
  }
  return {.latency_ps = spec.number(fields::compute_cpu_latency_ps),
          .memory_bytes_per_s = cpu_memory(spec, ranks_per_node),
          .operations_per_s = {spec.number(fields::compute_cpu_fp64_per_s), spec.number(fields::compute_cpu_fp32_per_s),
                               spec.number(fields::compute_cpu_half_per_s)}};
}

WorkRates::Place WorkRates::read_gpu(const Spec& spec) {
  if (!spec.has(fields::compute_gpu_fp64_per_s)) return {};
  return {.latency_ps = spec.number(fields::compute_gpu_latency_ps),
          .memory_bytes_per_s = spec.number(fields::compute_gpu_memory_bytes_per_s),
          .operations_per_s = {spec.number(fields::compute_gpu_fp64_per_s), spec.number(fields::compute_gpu_fp32_per_s),
                               spec.number(fields::compute_gpu_half_per_s)}};
}

double WorkRates::node_fp64_per_s() const {
  return static_cast<double>(std::max(cpu_.operations_per_s[0], gpu_.operations_per_s[0]));
}

Duration WorkRates::product(std::uint64_t m, std::uint64_t n, std::uint64_t k, Precision precision) const {
  if (m == 0 || n == 0 || k == 0) return {};
  const Wide elements = Wide{m} * k + Wide{k} * n + 2 * Wide{m} * n;
  return time({.operations = 2 * Wide{m} * n * k,
               .bytes = elements * element_bytes[static_cast<std::size_t>(precision)],
               .share_of_rate = share_of_rate(m, n, k)},
              precision);
}

Duration WorkRates::triangular_solve(std::uint64_t m, std::uint64_t n, Precision precision) const {
  if (m == 0 || n == 0) return {};
  const Wide elements = Wide{m} * m / 2 + 2 * Wide{m} * n;
  return time({.operations = Wide{m} * m * n, .bytes = elements * element_bytes[static_cast<std::size_t>(precision)]},
              precision);
}

Duration WorkRates::memory(std::uint64_t bytes) const {
  return bytes == 0 ? Duration{} : time({.bytes = bytes}, Precision::fp64);
}

Duration WorkRates::arithmetic(std::uint64_t operations, Precision precision) const {
  return operations == 0 ? Duration{} : time({.operations = operations}, precision);
}

Duration WorkRates::time(const Amount& amount, Precision precision) const {
  const bool has_gpu = gpu_.memory_bytes_per_s != 0;
  std::uint64_t ps = UINT64_MAX;
  if (where_ != Where::gpu) ps = time_on(cpu_, amount, precision, 1);
  if (has_gpu && where_ != Where::cpu) ps = std::min(ps, time_on(gpu_, amount, precision, amount.share_of_rate));
  return {ps};
}

std::uint64_t WorkRates::time_on(const Place& place, const Amount& amount, Precision precision,
                                 double share_of_rate) const {
  const auto divided = [&](Wide work, std::uint64_t rate) {
    return static_cast<std::uint64_t>((work * ps_per_s * sharers_ + rate - 1) / rate);
  };
  std::uint64_t computing = divided(amount.operations, place.operations_per_s[static_cast<std::size_t>(precision)]);
  if (share_of_rate < 1)
    computing = static_cast<std::uint64_t>(std::llround(static_cast<double>(computing) / share_of_rate));
  return place.latency_ps + std::max(computing, divided(amount.bytes, place.memory_bytes_per_s));
}

double WorkRates::share_of_rate(std::uint64_t m, std::uint64_t n, std::uint64_t k) const {
  if (shape_.tile == 0) return 1;
  const std::uint64_t tiles = divided_up(m, shape_.tile) * divided_up(n, shape_.tile);
  const std::uint64_t waves = divided_up(tiles, shape_.units);
  const double used = static_cast<double>(m) * static_cast<double>(n);
  const double taken = static_cast<double>(waves * shape_.units) * static_cast<double>(shape_.tile * shape_.tile);
  return used / taken * static_cast<double>(k) / static_cast<double>(k + shape_.fill);
}

}  // namespace dryfly::motif
