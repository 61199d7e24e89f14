// Which rank ends the job, where several are about to: the first that comes here. The others stay until they are ended.
#pragma once

#include <optional>

#include "conductor/rank.hpp"

namespace dryfly {

class FirstFailure {
 public:
  // Is the rank about to end the job, as another one was before it?
  bool keeps(const Rank& rank) {
    if (rank.page->gate.kind != wire::GateKind::fail) return false;
    if (!first_) first_ = rank.id;
    return *first_ != rank.id;
  }

 private:
  std::optional<RankId> first_;
};

}  // namespace dryfly
