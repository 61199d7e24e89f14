// The cores of a pattern's ranks: what a rank does takes longer by the detours of its core, which are those that the
// rank of a program has there, of the same seed, node and place among the node's ranks (docs/model/noise.md).
//
// Left out: a rank has one core and waits for nothing but the network.
#pragma once

#include <cstddef>
#include <vector>

#include "core/motif/stand.hpp"
#include "core/noise/noise.hpp"

namespace dryfly::generator {

class Cores final {
 public:
  Cores(const Stand& stand, const std::vector<NicId>& ranks);

  // When the rank is through with what it begins, or has waited for until, `from` and takes `work` on a silent core.
  Instant after(std::size_t rank, Instant from, Duration work) {
    return from + Duration{noises_[rank].duration_ps(from.ps, work.ps)};
  }
  // When the rank looks again that has waited until `at`.
  Instant awake(std::size_t rank, Instant at) { return Instant{noises_[rank].resume_ps(at.ps)}; }
  // When the rank begins, in a run that begins at 0.
  Instant begin(std::size_t rank) { return awake(rank, Instant{noises_[rank].start_skew_ps()}); }

 private:
  NoiseSettings settings_;
  std::vector<Noise> noises_;
  std::vector<NoiseTaken> taken_;
};

}  // namespace dryfly::generator
