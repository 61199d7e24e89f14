// The plan of a job: which ranks there are, where they stand and what each one sees. Python writes it, dryfly-launch
// reads it. A text file, one item per line, every value verbatim to the end of its line (a value cannot hold a
// newline); empty lines and lines that begin with '#' are skipped.
//
//   rank R node N local L    rank R is the L-th rank of node N; R runs over 0..size-1, each once, in any order
//   env NAME=VALUE           for every rank, over what dryfly-launch itself inherited
//   rankenv R NAME=VALUE     for rank R, over `env`
//   cwd DIR                  where the ranks start (default: where dryfly-launch was started)
//   stdin-rank R             the rank that reads dryfly-launch's standard input (default 0); the others get /dev/null
//   node N NAME              what node N is called; needed for `pmix`
//   pmix LIBRARY             serve PMIx beside PMI-1, with the server that this library has inside (launch/pmix.hpp)
//   pmix-folder DIR          where that server and its clients may put files; whoever made it removes it
//
// Where another launcher starts the ranks (launch/foreign.hpp):
//
//   starter WORD             a word of the launcher's command, one line each; the shim's own words follow them
//   starter-rank NAME        the environment variable in which it tells a process its rank
//   starter-env NAME=VALUE   for the launcher's own process
//   starter-pmi              the ranks use the launcher's PMI or PMIx, and dryfly-launch serves none
//
// Node numbers tell ranks of one node from ranks of another and nothing else: MPICH renumbers them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dryfly::launch {

struct PlannedRank {
  int node = -1;
  int local = -1;
  std::vector<std::string> environment;  // NAME=VALUE
};

struct Plan {
  std::vector<PlannedRank> ranks;
  std::vector<std::string> environment;  // NAME=VALUE
  std::string directory;                 // empty: stay
  int stdin_rank = 0;
  std::map<int, std::string> node_names;
  std::string pmix_library;  // empty: PMI alone
  std::string pmix_folder;
  std::vector<std::string> starter;  // empty: dryfly-launch itself
  std::string starter_rank;
  std::vector<std::string> starter_environment;  // NAME=VALUE
  bool starter_serves_pmi = false;

  int size() const { return static_cast<int>(ranks.size()); }
};

// Throws SpecError naming the line.
Plan parse_plan(std::string_view text);

}  // namespace dryfly::launch
