// What is to be run: from the command line, from an HPL.dat, or chosen from the memory and the ranks that there are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bad_input.hpp"
#include "blas.hpp"
#include "checkpoint.hpp"
#include "factor.hpp"

namespace dryfly::hpl {

// The value that the text names; BadInput with the accepted names otherwise.
template <class Value>
Value choose(const std::string& field, const std::string& text, const std::map<std::string, Value>& known) {
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  std::string accepted;
  for (const auto& [name, value] : known) accepted += (accepted.empty() ? "" : ", ") + name;
  throw BadInput(field + " " + text + ": accepted is " + accepted);
}

struct Options {
  // Every combination of these is run, in HPL's order.
  std::vector<std::int64_t> orders;        // empty: chosen
  std::vector<std::int64_t> blocks;        // empty: chosen
  std::vector<std::pair<int, int>> grids;  // empty: chosen
  std::vector<Variant> leaf = {Variant::right};
  std::vector<int> leaf_columns = {8};
  std::vector<int> pieces = {2};
  std::vector<Variant> recursion = {Variant::right};
  std::vector<Broadcast> broadcasts = {Broadcast::ring_modified};
  std::vector<int> depths;  // empty: 1 with several process columns, else 0

  bool row_major = true;
  double threshold = 16.0;  // of an HPL.dat also 0 or less: nothing is tested, as in HPL
  bool gpu = false;         // the matrix is in a GPU's memory
  Transfers transfers = Transfers::device;
  SwapOptions swap;
  bool transposed_top = false;
  std::int64_t alignment = 8;  // doubles
  std::string output;          // a file for what is printed; empty: standard output, "-": standard error

  PivotSearch search = PivotSearch::point_to_point;
  int split = 2;
  std::uint64_t seed = Generator::kHplSeed;
  BlasChoice blas;
  std::string json;
  int progress = 10;     // lines about every run; 0: none, -1: one for each step
  std::string solution;  // a file that gets x of every run, as doubles
  CheckpointOptions checkpoint;
  NicHints nics;
  bool check_binding = true;  // refuse what cannot be meant
  int spare = 0;              // ranks beyond the grid: the slowest are left out
  bool warm_up = false;
  bool screen = false;             // measure every rank before and after each run
  std::string data_file;           // HPL.dat to be read
  std::vector<std::string> given;  // flags of the command line, in its order
  bool help = false;
};

// The command line; `data_file` is only noted.
Options parse_command_line(int count, char** arguments);

// An HPL.dat's lines into `options`.
void parse_data_file(const std::string& name, const std::string& text, Options& options);

// Flags that an HPL.dat covers are not silently overridden by it: BadInput names the first of them.
void refuse_flags_beside_data_file(const std::string& name, const Options& options);

// Fills in what was not given, and refuses what cannot be run on so many ranks.
void complete(Options& options, int ranks, double memory_bytes);

// "8000", "1e4" and "8k" are whole numbers as well.
std::int64_t parse_count(const std::string& field, const std::string& text, std::int64_t least, std::int64_t most);

double parse_real(const std::string& field, const std::string& text, double least);

std::string usage();

constexpr std::int64_t kOrderMost = std::int64_t{1} << 31;
constexpr int kBlockMost = 1 << 14;
constexpr int kDepthMost = 8;

}  // namespace dryfly::hpl
