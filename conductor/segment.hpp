// The shared segment of a run: a memfd without a name, so that nothing stays behind whatever dies. Layout in
// wire/wire.hpp.
#pragma once

#include <cstdint>

#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"
#include "wire/arena.hpp"
#include "wire/wire.hpp"

namespace dryfly {

class Segment {
 public:
  // Throws SpecError when the spec asks for what cannot be (ranks, arena), std::system_error when memory is refused.
  explicit Segment(const Spec& spec);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  char* base() const { return base_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint32_t rank_count() const { return header().rank_count; }
  wire::SegmentHeader& header() const { return *reinterpret_cast<wire::SegmentHeader*>(base_); }
  wire::RankPage& page(RankId rank) const { return *reinterpret_cast<wire::RankPage*>(area(rank)); }
  char* command_ring(RankId rank) const { return area(rank) + sizeof(wire::RankPage); }
  char* event_ring(RankId rank) const { return command_ring(rank) + header().command_ring_bytes; }

 private:
  char* area(RankId rank) const { return base_ + header().rank_area_offset + header().rank_area_stride * rank.value; }

  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
  char* base_ = nullptr;
};

}  // namespace dryfly
