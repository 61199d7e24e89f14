// Which algorithm runs a collective: a list of rules, of which the first counts that fits the call.
//
// Models how MPICH and Open MPI decide (docs/model/collectives.md#selection); their own decisions are
// data/mpi/collectives-mpich.rules and data/mpi/collectives-openmpi.rules, and `dryfly` turns a tuning file for either
// library into such rules. A rule is a line:
//
//   COLLECTIVE ALGORITHM [ranks<N] [bytes>=N] [total<N] [count<pow2] [hierarchy=yes] [fan=N] [segment=N] [window=N] ...
//
// `ranks` is the size of the communicator, or `ranks=pow2`; `bytes` as in collectives.hpp; `total` that of all ranks
// together; `count<pow2`: fewer elements than the largest power of two that is no more than the ranks; `hierarchy`:
// several nodes with several ranks each; `one_node`. Comparisons are <, <=, >=, > and =.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/motif/collective/collective.hpp"
#include "core/motif/collective/decisions.hpp"

namespace dryfly::motif {

class Selection {
 public:
  // Rules that are asked before those that it has. Throws SpecError with `name` and the line. `by`: who decides so.
  void put_before(std::string_view rules, const std::string& name, const std::string& by);
  // The library's own; throws SpecError, which names those that there are.
  static Selection of_library(const std::string& library);

  // Throws SpecError where no rule fits.
  Choice choose(Rank& me, const Communicator& ranks, const CollectiveCall& call) const;
  // A library decides within an algorithm of its own.
  void decide(Rank& me, const Communicator& ranks, const CollectiveCall& call, std::string_view algorithm,
              const std::string& why) const;
  // What it and its copies have decided until now, in sentences.
  std::vector<std::string> chosen() const { return decisions_->sentences(); }

 private:
  struct Facts {
    std::uint64_t ranks;
    std::uint64_t bytes;
    std::uint64_t total;
    bool few_elements;
    bool hierarchy;
    bool one_node;
  };
  enum class Given : std::uint8_t { any, yes, no };
  struct Interval {
    std::uint64_t least = 0;
    std::uint64_t most = UINT64_MAX;
  };
  struct Rule {
    Choice choice;
    std::string why;
    Interval ranks;
    Interval bytes;
    Interval total;
    Given power_of_two = Given::any;
    Given few_elements = Given::any;
    Given hierarchy = Given::any;
    Given one_node = Given::any;

    bool fits(const Facts& facts) const;
  };

  static Rule parse_rule(const std::vector<std::string>& words);
  static void parse_word(Rule& rule, const std::string& word);

  std::array<std::vector<Rule>, collective_count> rules_;
  std::shared_ptr<Decisions> decisions_ = std::make_shared<Decisions>();
};

}  // namespace dryfly::motif
