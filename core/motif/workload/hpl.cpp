// High-Performance Linpack: the messages of `dryfly-hpl` and the time of its computing (docs/model/skeleton-hpl.md).
//
// Parameters, in base units; the names in brackets are those of `dryfly-hpl`:
//   n, nb, p, q               order, block, grid; p * q = ranks
//   pmap                      row, column: order of the ranks in the grid
//   bcast                     1ring, 1ringM, 2ring, 2ringM, long, longM
//   swap, swap_threshold      binary, spread, mix; columns up to which mix is binary
//   equil, depth, split       0 or 1; look-ahead 0 or 1; parts of an update
//   rfact, nbmin, ndiv        left, crout, right; columns of a leaf; pieces
//   pivot                     p2p, collective, hybrid-panel, hybrid-column
//   swap_nics, bcast_nics     NICs of a node for what goes along process columns and rows, such as 0,4
//   gpu                       blocking: as dryfly-hpl; beside: the rank goes on with messages while it multiplies
//   pfact                     faster, cpu, gpu: what factors panels
//   panel_cache               bytes of caches that a leaf of a panel may stay in; 0, as dryfly-hpl announces it: none
//   panel_ranks               of a node, that share its processors while they factor panels; without it all
//   pcie_bytes_per_s          copies between the two memories, each way; 0: none
//   gemm_tile, gemm_units, gemm_fill   how products fill a GPU: edge of a tile, units of a GPU, steps of k lost
//   full, stretches, stretch, warm     all panels, or how many samples of how many panels behind how many others
//   bound                     sampled only: largest bound of the error, in millionths; more panels are run until it is
//   kept rounds                    sampled only: rounds that those of a ring of pieces are lumped to; 0: all
#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>

#include "core/motif/workload/hpl/process.hpp"
#include "core/motif/workload/hpl/sampling.hpp"
#include "core/motif/workload/hpl/solve.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

using hpl::Machinery;
using hpl::Problem;

Where place_named(Parameters& parameters) {
  if (!parameters.has("pfact")) return Where::faster;
  const std::string& name = parameters.text("pfact");
  if (name == "faster") return Where::faster;
  if (name == "cpu") return Where::cpu;
  if (name == "gpu") return Where::gpu;
  throw SpecError("pfact = `" + name + "`: accepted is faster, cpu, gpu");
}

bool gpu_is_free(Parameters& parameters) {
  if (!parameters.has("gpu")) return false;
  const std::string& name = parameters.text("gpu");
  if (name == "blocking") return false;
  if (name == "beside") return true;
  throw SpecError("gpu = `" + name + "`: accepted is blocking, beside");
}

std::vector<std::uint32_t> nics(Parameters& parameters, const std::string& name) {
  std::vector<std::uint32_t> numbers;
  if (!parameters.has(name)) return numbers;
  const std::string& text = parameters.text(name);
  std::istringstream words(text + ",");
  for (std::string word; std::getline(words, word, ',');) {
    if (word.empty() || word.size() > 3 || word.find_first_not_of("0123456789") != std::string::npos) {
      throw SpecError(name + " = `" + text + "`: accepted are numbers of NICs such as 0,4");
    }
    numbers.push_back(static_cast<std::uint32_t>(std::stoul(word)));
  }
  return numbers;
}

ProductShape product_shape(Parameters& parameters, std::uint32_t ranks_per_node, std::uint64_t gpus) {
  ProductShape shape;
  shape.tile = parameters.number_or("gemm_tile", 0, 0, 1 << 14);
  const std::uint64_t units = parameters.number_or("gemm_units", 1, 1, 1 << 20);
  shape.units = std::max<std::uint64_t>(1, units * gpus / ranks_per_node);
  shape.fill = parameters.number_or("gemm_fill", 0, 0, 1 << 14);
  return shape;
}

void add_figures(Answer& answer, const Problem& problem, double peak) {
  const double seconds = static_cast<double>(answer.time.ps) * 1e-12;
  const double rate = problem.operations() / seconds;
  answer.figures.emplace_back("rate_flop_per_s", rate);
  answer.figures.emplace_back("of_gemm_rate_share", rate / peak);
  answer.figures.emplace_back("panels", static_cast<double>(problem.panels()));
}

}  // namespace

Answer predict_hpl(Stage& stage, Parameters& parameters) {
  const Problem problem = Problem::read(parameters, stage.ranks());
  const std::uint32_t ranks_per_node = stage.placement().per_node();
  const Where panel_place = place_named(parameters);
  const ProductShape shape = product_shape(parameters, ranks_per_node, parameters.number_or("gpus", 1, 1, 64));
  const WorkRates rates(stage.spec(), ranks_per_node, shape, Where::faster);
  const auto panel_ranks = parameters.number_or("panel_ranks", ranks_per_node, 1, ranks_per_node);
  const WorkRates panel_rates(stage.spec(), static_cast<std::uint32_t>(panel_ranks), shape, panel_place);
  const Machinery machinery{.gpu_is_free = gpu_is_free(parameters),
                            .pcie = Rate{parameters.number_or("pcie_bytes_per_s", 0, 0, std::uint64_t{1} << 50)},
                            .panel_on_cpu = panel_place == Where::cpu};
  hpl::Runner runner(stage, problem,
                     {rates, panel_rates, machinery, nics(parameters, "swap_nics"), nics(parameters, "bcast_nics")});
  const hpl::Sampling sampling = hpl::Sampling::read(parameters, problem);
  parameters.check_all_used();
  if (!sampling.is_full) stage.refuse_passing_faults();
  Answer answer = sampling.is_full ? runner.all() : runner.sampled(sampling);
  add_figures(answer, problem, rates.node_fp64_per_s() * stage.placement().nodes());
  return answer;
}

}  // namespace dryfly::motif
