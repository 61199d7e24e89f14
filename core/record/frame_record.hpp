// How many frames have crossed each link, by size, and their bytes: acknowledgements are frames too. A frame counts
// when it has come to the other end.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "core/contract/observer.hpp"

namespace dryfly {

class FrameRecord final : public NetworkObserver {
 public:
  static constexpr std::size_t places = 12;
  struct Frames {
    std::array<std::uint64_t, places> by_size{};
    std::uint64_t bytes = 0;
  };

  // `place_of`: by its bytes, where a frame is counted; below `places`. `answer_bytes`: of an acknowledgement.
  FrameRecord(std::size_t (*place_of)(std::uint64_t), std::uint32_t answer_bytes)
      : place_of_(place_of), answer_bytes_(answer_bytes) {}

  void carried(const CarriedPiece& piece) override {
    const std::uint32_t bytes = piece.acknowledgement ? answer_bytes_ : piece.bytes;
    Frames& frames = links_[piece.port];
    ++frames.by_size[place_of_(bytes)];
    frames.bytes += bytes;
  }
  // By driving port, those that have carried anything.
  const std::map<std::uint32_t, Frames>& links() const { return links_; }

 private:
  std::size_t (*place_of_)(std::uint64_t);
  std::uint32_t answer_bytes_;
  std::map<std::uint32_t, Frames> links_;
};

}  // namespace dryfly
