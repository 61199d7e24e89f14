// What copies to, from and between the GPUs of a node take where end-points share its memory: a latency, and their
// bytes at the rate of the pair. Models docs/model/gpu.md#on-a-node. Left out: that copies share links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/unit/unit.hpp"

namespace dryfly {

// In whose memory a copy begins and ends: 0 the host's, or a GPU's, counted from 1.
struct CopyEnds {
  std::uint8_t from = 0;
  std::uint8_t to = 0;
};

class GpuCopies {
 public:
  // Rates[a][b] for a up to b, with 0 for the host.
  GpuCopies() = default;
  GpuCopies(Duration latency, Duration local_latency, std::vector<std::vector<Rate>> rates)
      : latency_(latency), local_latency_(local_latency), rates_(std::move(rates)) {}

  // False: the host's core copies.
  bool carries(CopyEnds ends) const { return rate(ends).bytes_per_s != 0; }
  Duration time(CopyEnds ends, Bytes size) const {
    return (ends.from == ends.to ? local_latency_ : latency_) + transmission_time(size, rate(ends));
  }
  // 0: nobody has said.
  Rate rate(CopyEnds ends) const {
    const auto [low, high] = std::minmax(ends.from, ends.to);
    return high < rates_.size() ? rates_[low][high] : Rate{};
  }

 private:
  Duration latency_{};
  Duration local_latency_{};
  std::vector<std::vector<Rate>> rates_;
};

}  // namespace dryfly
