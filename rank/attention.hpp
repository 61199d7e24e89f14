// How a rank gets the conductor to look at its page: a bit in the segment, and the bell if the conductor sleeps.
#pragma once

#include <cstdint>

#include "wire/futex.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class Attention {
 public:
  Attention(wire::SegmentHeader* header, std::uint32_t rank) : header_(header), rank_(rank) {}

  void raise() const {
    header_->attention[rank_ / 64].fetch_or(std::uint64_t{1} << (rank_ % 64), std::memory_order_seq_cst);
    if (header_->conductor_asleep.load(std::memory_order_seq_cst) != 0) {
      header_->doorbell.fetch_add(1, std::memory_order_seq_cst);
      wire::futex_wake(header_->doorbell);
    }
  }

 private:
  wire::SegmentHeader* header_;
  std::uint32_t rank_;
};

}  // namespace dryfly::rank
