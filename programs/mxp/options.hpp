// What is to be run: the command line, completed from the memory and the ranks that there are.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../hpl/options.hpp"
#include "kernel.hpp"
#include "solve.hpp"

namespace dryfly::mxp {

using hpl::BadInput;

struct Options {
  std::vector<std::int64_t> orders;  // empty: chosen
  std::vector<std::int64_t> blocks;  // empty: chosen
  int rows = 0, columns = 0;         // of the grid; 0: chosen
  bool row_major = true;
  KernelChoice kernel;
  RefinementOptions refinement;
  double threshold = 16.0;
  std::uint64_t seed = hpl::Generator::kHplSeed;
  hpl::CheckpointOptions checkpoint;
  bool gpu = false;  // the matrix is in a GPU's memory
  hpl::Transfers transfers = hpl::Transfers::device;
  bool transfers_given = false;
  bool screen = false;  // measure every rank before and after each run
  int spare = 0;        // ranks beyond the grid: the slowest are left out
  bool warm_up = false;
  bool check_binding = true;   // refuse what cannot be meant
  int progress = 10;           // lines about every run; 0: none, -1: one for each step
  std::string json, solution;  // files
  bool help = false;
};

Options parse_command_line(int count, char** arguments);

// Fills in what was not given, and refuses what cannot be run on so many ranks or in so much memory (of all ranks).
void complete(Options& options, int ranks, double memory_bytes);

std::string usage();

}  // namespace dryfly::mxp
