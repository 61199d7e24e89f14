// What a selection has decided in a run, told once for each rule: which algorithm, of what sizes, on how many ranks.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/motif/collective/collective.hpp"

namespace dryfly::motif {

class Decisions {
 public:
  // `why`: who decides, and the rule's conditions. Jobs that run at once may call it at once.
  void add(const CollectiveCall& call, std::uint32_t ranks, std::string_view algorithm, const std::string& why);
  // A sentence each: of a collective from few bytes to many.
  std::vector<std::string> sentences() const;

 private:
  struct Range {
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;

    void take(std::uint64_t value);
    std::string text() const;
  };
  struct Seen {
    Range bytes;
    Range ranks;
  };

  mutable std::mutex mutex_;
  std::map<std::tuple<Collective, std::string, std::string>, Seen> seen_;
};

}  // namespace dryfly::motif
