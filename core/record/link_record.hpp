// What the links of a run have carried, over time: for each link that was used, how long it was busy, the bytes of data
// pieces, and how many bytes waited for it, in equal steps of time; and how long pieces waited at outputs, as a
// histogram. The steps begin at a microsecond and double whenever the run outgrows them, so that the record stays
// small however long the run is.
//
// A piece waits at a switch from the instant at which its head could leave until it does. What acknowledgements do
// counts as busy time only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/contract/observer.hpp"

namespace dryfly {

class LinkRecord final : public NetworkObserver {
 public:
  static constexpr std::size_t most_steps = 512;
  static constexpr std::size_t wait_bins = 40;  // bin 0: none; bin n: from 2^(n-1) to 2^n - 1 picoseconds

  struct Step {
    std::uint64_t busy_ps = 0;
    std::uint64_t data_bytes = 0;
    std::uint64_t waiting_byte_ps = 0;  // bytes that waited times how long
  };
  struct Link {
    std::vector<Step> steps;
    std::array<std::uint64_t, wait_bins> waits{};
    std::uint64_t longest_wait_ps = 0;
    std::uint64_t busy_until_ps = 0;
  };

  explicit LinkRecord(std::uint64_t start_ps) : start_ps_(start_ps) {}

  void carried(const CarriedPiece& piece) override;

  std::uint64_t step_ps() const { return step_ps_; }
  // By driving port, those that have carried anything.
  const std::map<std::uint32_t, Link>& links() const { return links_; }

 private:
  Step& step_at(Link& link, std::uint64_t since_start_ps);
  void double_steps();
  template <class Add>
  void spread(Link& link, std::uint64_t from_ps, std::uint64_t to_ps, Add add);

  std::uint64_t start_ps_;
  std::uint64_t step_ps_ = 1'000'000;
  std::map<std::uint32_t, Link> links_;
  std::vector<std::uint64_t> at_switch_since_;  // by packet: when its head could leave, or never
};

}  // namespace dryfly
