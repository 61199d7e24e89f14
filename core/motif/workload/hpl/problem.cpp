#include "core/motif/workload/hpl/problem.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace dryfly::motif::hpl {
namespace {

constexpr std::uint64_t order_most = std::uint64_t{1} << 31;
constexpr std::uint64_t block_most = std::uint64_t{1} << 14;
constexpr std::uint64_t ranks_most = std::uint64_t{1} << 24;
constexpr std::uint64_t page_elements = 512;

template <class Value, std::size_t Count>
Value choose(Parameters& parameters, const std::string& name, Value usual,
             const std::array<std::pair<std::string_view, Value>, Count>& known) {
  if (!parameters.has(name)) return usual;
  const std::string& text = parameters.text(name);
  std::string names;
  for (const auto& [word, value] : known) {
    if (word == text) return value;
    names += (names.empty() ? "" : ", ") + std::string(word);
  }
  throw SpecError(name + " = `" + text + "`: accepted is " + names);
}

using enum Broadcast;
constexpr std::array broadcasts{std::pair<std::string_view, Broadcast>{"1ring", ring},
                                std::pair<std::string_view, Broadcast>{"1ringM", ring_modified},
                                std::pair<std::string_view, Broadcast>{"2ring", two_rings},
                                std::pair<std::string_view, Broadcast>{"2ringM", two_rings_modified},
                                std::pair<std::string_view, Broadcast>{"long", long_message},
                                std::pair<std::string_view, Broadcast>{"longM", long_modified}};
constexpr std::array swaps{std::pair<std::string_view, Swap>{"binary", Swap::binary},
                           std::pair<std::string_view, Swap>{"spread", Swap::spread},
                           std::pair<std::string_view, Swap>{"mix", Swap::mix}};
constexpr std::array recursions{std::pair<std::string_view, Recursion>{"left", Recursion::left},
                                std::pair<std::string_view, Recursion>{"crout", Recursion::crout},
                                std::pair<std::string_view, Recursion>{"right", Recursion::right}};
constexpr std::array searches{std::pair<std::string_view, PivotSearch>{"p2p", PivotSearch::point_to_point},
                              std::pair<std::string_view, PivotSearch>{"collective", PivotSearch::collective},
                              std::pair<std::string_view, PivotSearch>{"hybrid-panel", PivotSearch::hybrid_panel},
                              std::pair<std::string_view, PivotSearch>{"hybrid-column", PivotSearch::hybrid_column}};
constexpr std::array mappings{std::pair<std::string_view, bool>{"row", true},
                              std::pair<std::string_view, bool>{"column", false}};

void check_grid(const Problem& problem, std::uint32_t ranks) {
  const std::uint64_t places = std::uint64_t{problem.rows} * problem.columns;
  if (places == ranks) return;
  throw SpecError("p * q = " + std::to_string(problem.rows) + " * " + std::to_string(problem.columns) + " = " +
                  std::to_string(places) + ": accepted is " + std::to_string(ranks) + ", the number of ranks");
}

}  // namespace

Problem Problem::read(Parameters& parameters, std::uint32_t ranks) {
  Problem problem;
  problem.order = parameters.number("n", 1, order_most);
  problem.block = parameters.number("nb", 1, block_most);
  problem.rows = static_cast<std::uint32_t>(parameters.number("p", 1, ranks_most));
  problem.columns = static_cast<std::uint32_t>(parameters.number("q", 1, ranks_most));
  check_grid(problem, ranks);
  if (problem.order < problem.block) {
    throw SpecError("n = " + std::to_string(problem.order) + ": accepted is nb = " + std::to_string(problem.block) +
                    " and more");
  }
  problem.row_major = choose(parameters, "pmap", true, mappings);
  problem.broadcast = choose(parameters, "bcast", problem.broadcast, broadcasts);
  problem.swap = choose(parameters, "swap", problem.swap, swaps);
  problem.swap_threshold = parameters.number_or("swap_threshold", problem.swap_threshold, 0, order_most);
  problem.equal_pieces = parameters.number_or("equil", 1, 0, 1) != 0;
  problem.depth = parameters.number_or("depth", problem.columns > 1 ? 1 : 0, 0, 1);
  problem.split = parameters.number_or("split", problem.split, 1, 64);
  problem.recursion = choose(parameters, "rfact", problem.recursion, recursions);
  problem.leaf_columns = parameters.number_or("nbmin", problem.leaf_columns, 1, block_most);
  problem.pieces = parameters.number_or("ndiv", problem.pieces, 2, block_most);
  problem.search = choose(parameters, "pivot", problem.search, searches);
  problem.panel_cache = parameters.number_or("panel_cache", 0, 0, std::uint64_t{1} << 50U);
  return problem;
}

std::uint64_t Problem::leaf_passes(std::uint64_t width, std::uint64_t height) const {
  return width * height * element_bytes <= panel_cache ? 2 : 3 + 3 * (width - 1) / 2;
}

std::uint64_t column_stride(std::uint64_t rows) {
  constexpr std::uint64_t alignment = 8;
  std::uint64_t stride = (std::max<std::uint64_t>(rows, 1) + alignment - 1) / alignment * alignment;
  while (stride % page_elements == 0) stride += alignment;
  return stride;
}

}  // namespace dryfly::motif::hpl
