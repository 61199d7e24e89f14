// What has last been placed into a rank's own memory by its MPI library and by NICs: messages received, and the
// library's own copies. Such bytes are written anew also where they are the same as before: a program that exchanges
// the same data again and again does not find them in the caches of those who have copied them
// (core/memory/kept_copies.hpp).
//
// Kept for the latest pieces, each of which grows as long as the next lies behind it. Pieces that are short and stand
// alone are not kept: they change little of a long message.
//
// All zeros is empty, so that it may lie in memory that ranks share. One writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dryfly {

class PlacedMemory {
 public:
  static constexpr std::size_t pieces = 64;
  static constexpr std::uint64_t least_bytes = 1024;

  void note(const void* begin, std::uint64_t bytes) {
    const auto at = reinterpret_cast<std::uint64_t>(begin);
    Piece& latest = pieces_[count_ % pieces];
    if (count_ != 0 && latest.end == at) {
      latest.end += bytes;
      latest.number = ++changes_;
    } else if (bytes >= least_bytes) {
      pieces_[++count_ % pieces] = {.begin = at, .end = at + bytes, .number = ++changes_};
    }
  }
  // Grows whenever something is placed there; 0: nothing has been, or too long ago.
  std::uint64_t version(std::uint64_t begin, std::uint64_t bytes) const {
    std::uint64_t latest = 0;
    for (const Piece& piece : pieces_) {
      if (piece.number > latest && piece.begin < begin + bytes && begin < piece.end) latest = piece.number;
    }
    return latest;
  }

 private:
  struct Piece {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t number;
  };

  std::uint64_t count_;
  std::uint64_t changes_;
  std::array<Piece, pieces> pieces_;
};

}  // namespace dryfly
