#include "options.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

namespace dryfly::mxp {
namespace {

const std::map<std::string, KernelKind> kKernels = {
    {"auto", KernelKind::chosen}, {"amx", KernelKind::amx}, {"avx512-bf16", KernelKind::avx512_bf16},
    {"avx2", KernelKind::avx2},   {"mkl", KernelKind::mkl}, {"sgemm", KernelKind::sgemm}};
const std::map<std::string, Precision> kPrecisions = {
    {"bf16", Precision::bf16}, {"fp16", Precision::fp16}, {"fp32", Precision::fp32}};
const std::map<std::string, Refinement> kRefinements = {{"classic", Refinement::classic}, {"gmres", Refinement::gmres}};
const std::map<std::string, bool> kMappings = {{"row", true}, {"column", false}};
const std::map<std::string, bool> kBindings = {{"check", true}, {"any", false}};
const std::map<std::string, bool> kMemories = {{"gpu", true}, {"host", false}};
const std::map<std::string, hpl::Transfers> kTransfers = {{"device", hpl::Transfers::device},
                                                          {"staged", hpl::Transfers::staged}};
const std::map<std::string, bool> kYesNo = {{"yes", true}, {"no", false}};

int whole(const std::string& field, const std::string& text, int least, int most) {
  return static_cast<int>(hpl::parse_count(field, text, least, most));
}

std::vector<std::int64_t> counts(const std::string& field, const std::string& text, std::int64_t most) {
  std::vector<std::int64_t> values;
  std::stringstream stream(text + ",");
  for (std::string part; std::getline(stream, part, ',');) values.push_back(hpl::parse_count(field, part, 1, most));
  return values;
}

void parse_grid(Options& options, const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) throw BadInput("--grid " + text + ": accepted is PxQ, such as 2x3");
  options.rows = whole("--grid", text.substr(0, cross), 1, 1 << 24);
  options.columns = whole("--grid", text.substr(cross + 1), 1, 1 << 24);
}

struct Flag {
  const char* name;
  const char* value;
  const char* help;
  std::function<void(Options&, const std::string&)> set;
};

// Order of the help text.
const std::vector<Flag>& flags() {
  using Text = const std::string&;
  static const std::vector<Flag> kFlags = {
      {"-N", "N,...", "order of the matrix; without it: as large as four fifths of the free memory allow",
       [](Options& o, Text t) { o.orders = counts("-N", t, hpl::kOrderMost); }},
      {"--nb", "NB,...", "block size", [](Options& o, Text t) { o.blocks = counts("--nb", t, hpl::kBlockMost); }},
      {"--grid", "PxQ", "process grid; without it: as square as possible, P <= Q", parse_grid},
      {"--pmap", "row|column", "order of the ranks in the grid",
       [](Options& o, Text t) { o.row_major = hpl::choose("--pmap", t, kMappings); }},
      {"--precision", "bf16|fp16|fp32", "in which A and its factors are stored",
       [](Options& o, Text t) { o.kernel.precision = hpl::choose("--precision", t, kPrecisions); }},
      {"--kernel", "KIND", "auto, amx, avx512-bf16 or avx2 (dryfly's own), mkl (its BF16 GEMM) or sgemm",
       [](Options& o, Text t) { o.kernel.kind = hpl::choose("--kernel", t, kKernels); }},
      {"--blas", "mkl|openblas|PATH", "the library of the last two",
       [](Options& o, Text t) { o.kernel.blas.library = t; }},
      {"--threads", "T", "its threads in each rank",
       [](Options& o, Text t) { o.kernel.blas.threads = whole("--threads", t, 1, 4096); }},
      {"--memory", "host|gpu", "where the matrix is; gpu: of a rank's simulated GPU, whose kernels take its time",
       [](Options& o, Text t) { o.gpu = hpl::choose("--memory", t, kMemories); }},
      {"--gpu-transfers", "device|staged",
       "what MPI moves of a matrix on GPUs: the GPUs' memory, or pinned copies on the host",
       [](Options& o, Text t) {
         o.transfers = hpl::choose("--gpu-transfers", t, kTransfers);
         o.transfers_given = true;
       }},
      {"--refine", "classic|gmres", "how x gets the accuracy of FP64",
       [](Options& o, Text t) { o.refinement.kind = hpl::choose("--refine", t, kRefinements); }},
      {"--steps", "N", "of the refinement at most; default 50",
       [](Options& o, Text t) { o.refinement.steps_most = whole("--steps", t, 0, 10000); }},
      {"--threshold", "X", "of the residual",
       [](Options& o, Text t) { o.threshold = hpl::parse_real("--threshold", t, 0); }},
      {"--seed", "S", "of the matrix; HPL's is 100",
       [](Options& o, Text t) {
         o.seed = static_cast<std::uint64_t>(hpl::parse_count("--seed", t, 0, std::int64_t{1} << 53));
       }},
      {"--screen", "yes|no", "measure every rank before and after each run, and name the slow ones",
       [](Options& o, Text t) { o.screen = hpl::choose("--screen", t, kYesNo); }},
      {"--spare", "K", "ranks beyond P x Q; all are measured, and the slowest are left out",
       [](Options& o, Text t) { o.spare = whole("--spare", t, 0, 1 << 20); }},
      {"--warm-up", "yes|no", "multiply and exchange messages once before the time starts",
       [](Options& o, Text t) { o.warm_up = hpl::choose("--warm-up", t, kYesNo); }},
      {"--binding", "check|any", "natively: refuse ranks that are bound to each other's cores or far from their memory",
       [](Options& o, Text t) { o.check_binding = hpl::choose("--binding", t, kBindings); }},
      {"--progress", "N|all|none", "lines that say how far it is",
       [](Options& o, Text t) { o.progress = t == "all"    ? -1
                                             : t == "none" ? 0
                                                           : whole("--progress", t, 0, 1 << 30); }},
      {"--checkpoint", "FOLDER", "keep the state there, to go on after an interruption",
       [](Options& o, Text t) { o.checkpoint.folder = t; }},
      {"--checkpoint-every", "S", "seconds between; 0: after each step; default 600",
       [](Options& o, Text t) { o.checkpoint.every = hpl::parse_real("--checkpoint-every", t, 0); }},
      {"--restart", "yes|no", "go on from what --checkpoint has kept, if anything",
       [](Options& o, Text t) { o.checkpoint.restart = hpl::choose("--restart", t, kYesNo); }},
      {"--solution", "FILE", "x of every run, as doubles", [](Options& o, Text t) { o.solution = t; }},
      {"--json", "FILE", "the result with every step's times", [](Options& o, Text t) { o.json = t; }},
  };
  return kFlags;
}

// A panel is work for one process column only, so it is the narrower the fewer columns a process has.
std::int64_t chosen_block(std::int64_t order, int most) {
  const std::int64_t local = order / most;
  return local >= 4000 ? 256 : local >= 1500 ? 192 : local >= 400 ? 96 : 48;
}

// A, the inverses of its diagonal blocks in FP32, and for each rank the step's U and two steps' L.
double need_bytes(const Options& options, std::int64_t n, std::int64_t nb) {
  const double order = static_cast<double>(n), block = static_cast<double>(std::min(n, nb));
  const double size = static_cast<double>(element_bytes(options.kernel.precision));
  return size * order * order + 4 * order * block + size * order * block * (options.rows + 2 * options.columns);
}

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g GB", bytes / 1e9);
  return text;
}

}  // namespace

Options parse_command_line(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string name = arguments[i], value;
    if (name == "-h" || name == "--help") {
      options.help = true;
      continue;
    }
    const std::size_t equals = name.rfind("--", 0) == 0 ? name.find('=') : std::string::npos;
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto found =
        std::find_if(flags().begin(), flags().end(), [&](const Flag& flag) { return flag.name == name; });
    if (found == flags().end()) throw BadInput("unknown option " + name + "; --help lists them");
    if (equals == std::string::npos) {
      if (i + 1 == count) throw BadInput(name + ": its value is missing (" + found->value + ")");
      value = arguments[++i];
    }
    found->set(options, value);
  }
  return options;
}

void complete(Options& options, int ranks, double memory_bytes) {
  if (options.rows == 0) {
    options.rows = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
    while (ranks % options.rows != 0) --options.rows;
    options.columns = ranks / options.rows;
  }
  const std::int64_t needed = static_cast<std::int64_t>(options.rows) * options.columns;
  if (needed != ranks)
    throw BadInput("grid " + std::to_string(options.rows) + "x" + std::to_string(options.columns) + ": it needs " +
                   std::to_string(needed) + " ranks, and there are " + std::to_string(ranks));
  if (!options.checkpoint.folder.empty() && options.orders.size() * options.blocks.size() > 1)
    throw BadInput("--checkpoint " + options.checkpoint.folder + ": it is for one run, and there are several");
  if (options.checkpoint.restart && options.checkpoint.folder.empty())
    throw BadInput("--restart yes: it needs --checkpoint FOLDER");
  if (!options.gpu && options.transfers_given) throw BadInput("--gpu-transfers: it is for --memory gpu");
  if (options.gpu && !options.checkpoint.folder.empty())
    throw BadInput("--checkpoint " + options.checkpoint.folder + ": accepted is --memory host beside it");
  if (options.gpu && (options.screen || options.spare > 0 || options.warm_up))
    throw BadInput(std::string(options.screen      ? "--screen yes"
                               : options.spare > 0 ? "--spare"
                                                   : "--warm-up yes") +
                   ": it is of the processors' kernels; accepted is --memory host beside it");
  if (options.orders.empty()) {
    const double order = std::sqrt(0.8 * memory_bytes / static_cast<double>(element_bytes(options.kernel.precision)));
    const std::int64_t block = options.blocks.empty() ? 256 : options.blocks.front();
    const auto most = static_cast<std::int64_t>(std::min(order, 1.0 * hpl::kOrderMost));
    options.orders = {std::max(block, most / block * block)};
  }
  if (options.blocks.empty())
    options.blocks = {chosen_block(options.orders.front(), std::max(options.rows, options.columns))};
  for (const std::int64_t order : options.orders)
    for (const std::int64_t block : options.blocks)
      if (const double need = need_bytes(options, order, block); need > memory_bytes)
        throw BadInput("N = " + std::to_string(order) + ": the matrix and its panels need " + gigabytes(need) +
                       ", and " + gigabytes(memory_bytes) + " of memory are free");
}

std::string usage() {
  std::ostringstream text;
  text << "dryfly-mxp: solves a dense system of equations to the accuracy of FP64 from factors in BF16, as HPL-MxP "
          "asks.\n\n";
  for (const Flag& flag : flags()) {
    const std::string left = std::string("  ") + flag.name + " " + flag.value;
    text << left << std::string(left.size() < 28 ? 28 - left.size() : 1, ' ') << flag.help << "\n";
  }
  text << "\nSeveral values, with ',' between them, are all run in turn. Exit status: 0 passed, 1 failed, 2 bad "
          "input.\n";
  return text.str();
}

}  // namespace dryfly::mxp
