// The detours of the cores of a job's ranks, which are those that the rank of a program has there, of the same seed,
// node and place among the node's ranks (docs/model/noise.md), and the cores that are slower than they should be
// (docs/model/reliability.md#parts-of-nodes). A machine without either costs a look at two pointers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/host/noise_settings.hpp"
#include "core/motif/job/placement.hpp"
#include "core/noise/noise.hpp"
#include "core/spec/slow_parts.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

class Noises {
 public:
  Noises(const Spec& spec, const Placement& placement) : settings_(read_noise(spec)) {
    const SlowParts parts = SlowParts::read(spec);
    if (!parts.cpus.empty()) {
      shares_.resize(placement.ranks());
      for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) {
        shares_[rank] = SlowParts::share_of(parts.cpus, placement.node_of(rank));
      }
    }
    if (settings_.source_count == 0 && settings_.start_skew_ps == 0) return;
    noises_ = std::make_unique<Noise[]>(placement.ranks());
    for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) {
      noises_[rank].begin(settings_, placement.node_of(rank).value, rank % placement.per_node(), 0, taken_);
    }
  }

  // When a rank is through that begins `work` at `from`.
  Instant after(std::uint32_t rank, Instant from, Duration work) const {
    if (!shares_.empty() && shares_[rank] != SlowParts::whole_ppb) work = stretched(work, shares_[rank]);
    return from + (noises_ ? Duration{noises_[rank].duration_ps(from.ps, work.ps)} : work);
  }
  // When a rank goes on that has waited until `at`.
  Instant awake(std::uint32_t rank, Instant at) const { return noises_ ? Instant{noises_[rank].resume_ps(at.ps)} : at; }
  // When a rank begins.
  Instant begin(std::uint32_t rank) const {
    return noises_ ? awake(rank, Instant{noises_[rank].start_skew_ps()}) : Instant{};
  }

 private:
  static Duration stretched(Duration work, std::uint64_t share_ppb) {
    __extension__ using Wide = unsigned __int128;
    return {static_cast<std::uint64_t>(static_cast<Wide>(work.ps) * SlowParts::whole_ppb / share_ppb)};
  }

  std::vector<std::uint64_t> shares_;  // of each rank's cores, where any is slow
  NoiseSettings settings_;
  NoiseTaken taken_{};
  std::unique_ptr<Noise[]> noises_;
};

}  // namespace dryfly::motif
