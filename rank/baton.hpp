// The rank's side of the order in which the ranks of a node are inside MPI (conductor/batons.hpp), where they talk
// through memory.
#pragma once

#include <cstdint>

#include "rank/attachment.hpp"
#include "rank/attention.hpp"
#include "rank/gate.hpp"
#include "rank/self.hpp"

namespace dryfly::rank {

class Baton {
 public:
  Baton(const Attachment& attachment, Attention attention, const Self* self, Gate& gate)
      : header_(attachment.header), page_(attachment.page), attention_(attention), self_(self), gate_(gate) {}

  // Whether this run has batons.
  bool is_used() const { return header_->nodes_share_memory != 0; }
  // Before the library looks for events at an instant later than the one at which this rank got its node's baton, the
  // others of the node come first, up to there.
  void renew() {
    if (is_used() && self_->now() != gate_.released_at_ps()) ask_again();
  }
  void give_back();

 private:
  void ask_again();

  const wire::SegmentHeader* header_;
  wire::RankPage* page_;
  Attention attention_;
  const Self* self_;
  Gate& gate_;
};

}  // namespace dryfly::rank
