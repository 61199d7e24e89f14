#include "options.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

namespace dryfly::hpl {
namespace {

const std::map<std::string, Variant> kVariants = {
    {"left", Variant::left}, {"crout", Variant::crout}, {"right", Variant::right}};
const std::map<std::string, Broadcast> kBroadcastNames = {
    {"1ring", Broadcast::ring},        {"1ringM", Broadcast::ring_modified},
    {"2ring", Broadcast::two_rings},   {"2ringM", Broadcast::two_rings_modified},
    {"long", Broadcast::long_message}, {"longM", Broadcast::long_modified}};
const std::map<std::string, SwapKind> kSwaps = {
    {"binary", SwapKind::binary}, {"spread", SwapKind::spread}, {"mix", SwapKind::mix}};
const std::map<std::string, PivotSearch> kSearches = {{"p2p", PivotSearch::point_to_point},
                                                      {"collective", PivotSearch::collective},
                                                      {"hybrid-panel", PivotSearch::hybrid_panel},
                                                      {"hybrid-column", PivotSearch::hybrid_column}};
const std::map<std::string, bool> kForms = {{"transposed", true}, {"plain", false}};
const std::map<std::string, bool> kMappings = {{"row", true}, {"column", false}};
const std::map<std::string, bool> kMemories = {{"gpu", true}, {"host", false}};
const std::map<std::string, Transfers> kTransfers = {{"device", Transfers::device}, {"staged", Transfers::staged}};
const std::map<std::string, bool> kYesNo = {{"yes", true}, {"no", false}};

template <class Value>
std::vector<Value> list(const std::string& text, const std::function<Value(const std::string&)>& parse) {
  std::vector<Value> values;
  std::stringstream stream(text + ",");
  for (std::string part; std::getline(stream, part, ',');) values.push_back(parse(part));
  return values;
}

std::pair<int, int> parse_grid(const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) throw BadInput("--grid " + text + ": accepted is PxQ, such as 2x3");
  return {static_cast<int>(parse_count("--grid", text.substr(0, cross), 1, 1 << 24)),
          static_cast<int>(parse_count("--grid", text.substr(cross + 1), 1, 1 << 24))};
}

int parse_progress(const std::string& text) {
  if (text == "all") return -1;
  if (text == "none") return 0;
  return static_cast<int>(parse_count("--progress", text, 0, 1 << 30));
}

std::function<int(const std::string&)> whole(const std::string& field, int least, int most) {
  return [=](const std::string& text) { return static_cast<int>(parse_count(field, text, least, most)); };
}

std::vector<int> nic_list(const std::string& text) {
  return list<int>(text, whole("--swap-nic or --bcast-nic", 0, 63));
}

using Setter = std::function<void(Options&, const std::string&)>;

struct Flag {
  const char* value;
  const char* help;
  Setter set;
};

// Order of the help text.
const std::vector<std::pair<std::string, Flag>>& flags() {
  using Text = const std::string&;
  static const std::vector<std::pair<std::string, Flag>> kFlags = {
      {"-N",
       {"N,...", "order of the matrix; without it: as large as four fifths of the free memory allow",
        [](Options& o, Text t) {
          o.orders = list<std::int64_t>(t, [](Text p) { return parse_count("-N", p, 1, kOrderMost); });
        }}},
      {"--nb",
       {"NB,...", "block size",
        [](Options& o, Text t) {
          o.blocks = list<std::int64_t>(t, [](Text p) { return parse_count("--nb", p, 1, kBlockMost); });
        }}},
      {"--grid",
       {"PxQ,...", "process grid; without it: as square as possible, P <= Q",
        [](Options& o, Text t) { o.grids = list<std::pair<int, int>>(t, parse_grid); }}},
      {"--dat",
       {"FILE", "read an HPL.dat (one in the current folder is read when neither -N nor --dat is given)",
        [](Options& o, Text t) { o.data_file = t; }}},
      {"--pmap",
       {"row|column", "order of the ranks in the grid",
        [](Options& o, Text t) { o.row_major = choose("--pmap", t, kMappings); }}},
      {"--pfact",
       {"KIND,...", "left, crout or right: the panel's last columns",
        [](Options& o, Text t) { o.leaf = list<Variant>(t, [](Text p) { return choose("--pfact", p, kVariants); }); }}},
      {"--nbmin",
       {"N,...", "columns at which the recursion ends",
        [](Options& o, Text t) { o.leaf_columns = list<int>(t, whole("--nbmin", 1, kBlockMost)); }}},
      {"--ndiv",
       {"N,...", "pieces of a panel in the recursion",
        [](Options& o, Text t) { o.pieces = list<int>(t, whole("--ndiv", 2, kBlockMost)); }}},
      {"--rfact",
       {"KIND,...", "left, crout or right: the recursion",
        [](Options& o, Text t) {
          o.recursion = list<Variant>(t, [](Text p) { return choose("--rfact", p, kVariants); });
        }}},
      {"--bcast",
       {"KIND,...", "1ring, 1ringM, 2ring, 2ringM, long, longM: broadcast of the panels",
        [](Options& o, Text t) {
          o.broadcasts = list<Broadcast>(t, [](Text p) { return choose("--bcast", p, kBroadcastNames); });
        }}},
      {"--depth",
       {"D,...", "look-ahead: panels that are factored ahead",
        [](Options& o, Text t) { o.depths = list<int>(t, whole("--depth", 0, kDepthMost)); }}},
      {"--swap",
       {"KIND", "binary, spread or mix: exchange of rows",
        [](Options& o, Text t) { o.swap.kind = choose("--swap", t, kSwaps); }}},
      {"--swap-threshold",
       {"N", "columns up to which mix is binary",
        [](Options& o, Text t) { o.swap.threshold = parse_count("--swap-threshold", t, 0, kOrderMost); }}},
      {"--l1",
       {"plain|transposed", "form of the panel's triangle",
        [](Options& o, Text t) { o.transposed_top = choose("--l1", t, kForms); }}},
      {"--u",
       {"plain|transposed", "form of U (with one process row it stays in the matrix)",
        [](Options& o, Text t) { o.swap.transposed_u = choose("--u", t, kForms); }}},
      {"--equil",
       {"yes|no", "equal pieces in the ring of spread",
        [](Options& o, Text t) { o.swap.equal_pieces = choose("--equil", t, kYesNo); }}},
      {"--align",
       {"N", "alignment of columns in doubles",
        [](Options& o, Text t) { o.alignment = parse_count("--align", t, 1, 256); }}},
      {"--pivot",
       {"p2p|collective|hybrid-panel|hybrid-column",
        "search for the pivot; hybrids: collective but in the first panel, or in the first column of each",
        [](Options& o, Text t) { o.search = choose("--pivot", t, kSearches); }}},
      {"--split",
       {"N", "parts of an update; the rows of one are exchanged during the product of another",
        [](Options& o, Text t) { o.split = whole("--split", 1, 64)(t); }}},
      {"--threshold",
       {"X", "of the residual; 0: it is not tested",
        [](Options& o, Text t) { o.threshold = parse_real("--threshold", t, 0); }}},
      {"--seed",
       {"S", "of the matrix; HPL's is 100",
        [](Options& o, Text t) {
          o.seed = static_cast<std::uint64_t>(parse_count("--seed", t, 0, std::int64_t{1} << 53));
        }}},
      {"--memory",
       {"host|gpu", "where the matrix is; gpu: of a rank's simulated GPU, whose kernels take its time",
        [](Options& o, Text t) { o.gpu = choose("--memory", t, kMemories); }}},
      {"--gpu-transfers",
       {"device|staged", "what MPI moves of a matrix on GPUs: the GPUs' memory, or pinned copies on the host",
        [](Options& o, Text t) { o.transfers = choose("--gpu-transfers", t, kTransfers); }}},
      {"--blas", {"mkl|openblas|PATH", "the library with the kernels", [](Options& o, Text t) { o.blas.library = t; }}},
      {"--threads",
       {"T", "BLAS threads of a rank", [](Options& o, Text t) { o.blas.threads = whole("--threads", 1, 4096)(t); }}},
      {"--progress",
       {"N|all|none", "lines that say how far it is", [](Options& o, Text t) { o.progress = parse_progress(t); }}},
      {"--screen",
       {"yes|no", "measure the kernels and the memory of every rank before and after, and name slow ranks",
        [](Options& o, Text t) { o.screen = choose("--screen", t, kYesNo); }}},
      {"--spare",
       {"K", "ranks more than the grid has: all are measured, and the slowest K are left out",
        [](Options& o, Text t) { o.spare = whole("--spare", 0, 1 << 20)(t); }}},
      {"--warm-up",
       {"yes|no", "multiply and exchange messages once before the time starts",
        [](Options& o, Text t) { o.warm_up = choose("--warm-up", t, kYesNo); }}},
      {"--binding",
       {"check|any", "natively: refuse ranks that are bound to each other's cores or far from their memory",
        [](Options& o, Text t) {
          o.check_binding = choose("--binding", t, std::map<std::string, bool>{{"check", true}, {"any", false}});
        }}},
      {"--swap-nic",
       {"K", "hint to MPI: the NIC for the exchange of rows", [](Options& o, Text t) { o.nics.column = nic_list(t); }}},
      {"--bcast-nic",
       {"K,...", "hint to MPI: the NICs for the broadcasts, by ranks in turn",
        [](Options& o, Text t) { o.nics.row = nic_list(t); }}},
      {"--checkpoint",
       {"FOLDER", "keep the state there, to go on after an interruption",
        [](Options& o, Text t) { o.checkpoint.folder = t; }}},
      {"--checkpoint-every",
       {"S", "seconds between; 0: after each step; default 600",
        [](Options& o, Text t) { o.checkpoint.every = parse_real("--checkpoint-every", t, 0); }}},
      {"--restart",
       {"yes|no", "go on from what --checkpoint has kept, if anything",
        [](Options& o, Text t) { o.checkpoint.restart = choose("--restart", t, kYesNo); }}},
      {"--solution", {"FILE", "x of every run, as doubles", [](Options& o, Text t) { o.solution = t; }}},
      {"--json", {"FILE", "the result with every step's times", [](Options& o, Text t) { o.json = t; }}},
  };
  return kFlags;
}

// A panel is work for one process column only, so it is the narrower the fewer columns a process has.
constexpr std::int64_t kWidest = 256;

std::int64_t chosen_block(const Options& options) {
  const auto& [rows, columns] = options.grids.front();
  const std::int64_t local = options.orders.front() / std::max(rows, columns);
  return local >= 4000 ? kWidest : local >= 1000 ? 128 : local >= 250 ? 64 : 32;
}

}  // namespace

std::int64_t parse_count(const std::string& field, const std::string& text, std::int64_t least, std::int64_t most) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != 0 && used + 1 == text.size() && text.back() == 'k') {
    value *= 1000;
    ++used;
  }
  if (used == 0 || used != text.size() || value != std::floor(value) || value < static_cast<double>(least) ||
      value > static_cast<double>(most))
    throw BadInput(field + " " + text + ": accepted is a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
  return static_cast<std::int64_t>(value);
}

double parse_real(const std::string& field, const std::string& text, double least) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(value >= least)) {
    std::ostringstream message;
    message << field << " " << text << ": accepted is a number from " << least << " on";
    throw BadInput(message.str());
  }
  return value;
}

Options parse_command_line(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string name = arguments[i], value;
    if (name == "-h" || name == "--help") {
      options.help = true;
      continue;
    }
    const std::size_t equals = name.rfind("--", 0) == 0 ? name.find('=') : std::string::npos;
    const bool has_value = equals != std::string::npos;
    if (has_value) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto found =
        std::find_if(flags().begin(), flags().end(), [&](const auto& flag) { return flag.first == name; });
    if (found == flags().end()) throw BadInput("unknown option " + name + "; --help lists them");
    if (!has_value) {
      if (i + 1 == count) throw BadInput(name + ": its value is missing (" + found->second.value + ")");
      value = arguments[++i];
    }
    found->second.set(options, value);
    options.given.push_back(name);
  }
  return options;
}

std::string usage() {
  std::ostringstream text;
  text << "dryfly-hpl: solves a dense system of equations in FP64 over a grid of MPI processes, as HPL does.\n\n";
  for (const auto& [name, flag] : flags()) {
    const std::string left = "  " + name + " " + flag.value;
    text << left << std::string(left.size() < 28 ? 28 - left.size() : 1, ' ') << flag.help << "\n";
  }
  text << "\nSeveral values, with ',' between them, are all run in turn. Exit status: 0 passed, 1 failed, 2 bad "
          "input.\n";
  return text.str();
}

namespace {

void refuse_beside_gpu(const Options& options) {
  const auto has = [&](const char* name) {
    return std::find(options.given.begin(), options.given.end(), name) != options.given.end();
  };
  if (!options.gpu && has("--gpu-transfers")) throw BadInput("--gpu-transfers: it is for --memory gpu");
  if (!options.gpu) return;
  if (!options.checkpoint.folder.empty())
    throw BadInput("--checkpoint " + options.checkpoint.folder + ": accepted is --memory host beside it");
  if (options.screen || options.spare > 0 || options.warm_up)
    throw BadInput(std::string(options.screen      ? "--screen yes"
                               : options.spare > 0 ? "--spare"
                                                   : "--warm-up yes") +
                   ": it is of the processors' kernels; accepted is --memory host beside it");
}

}  // namespace

void complete(Options& options, int ranks, double memory_bytes) {
  if (options.grids.empty()) {
    int rows = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
    while (ranks % rows != 0) --rows;
    options.grids.emplace_back(rows, ranks / rows);
  }
  for (const auto& [rows, columns] : options.grids)
    if (static_cast<std::int64_t>(rows) * columns != ranks)
      throw BadInput("grid " + std::to_string(rows) + "x" + std::to_string(columns) + ": it needs " +
                     std::to_string(static_cast<std::int64_t>(rows) * columns) + " ranks, and there are " +
                     std::to_string(ranks));
  if (!options.checkpoint.folder.empty() && options.orders.size() * options.blocks.size() > 1)
    throw BadInput("--checkpoint " + options.checkpoint.folder + ": it is for one run, and there are several");
  if (options.checkpoint.restart && options.checkpoint.folder.empty())
    throw BadInput("--restart yes: it needs --checkpoint FOLDER");
  refuse_beside_gpu(options);
  if (options.blocks.empty()) options.blocks = {options.orders.empty() ? kWidest : chosen_block(options)};
  if (options.orders.empty()) {
    const double block = static_cast<double>(options.blocks.front());
    const double order = std::floor(std::sqrt(0.8 * memory_bytes / sizeof(double)) / block) * block;
    options.orders = {std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(order, 1.0 * kOrderMost)))};
  }
  if (options.depths.empty()) options.depths = {options.grids.front().second > 1 ? 1 : 0};
}

}  // namespace dryfly::hpl
