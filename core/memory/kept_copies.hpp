// What a core has copied out of another process's memory lately, and so has in its caches still.
//
// Models docs/model/on-node.md#copied-before: what comes again from the same place, as long as it was and with the same
// bytes in it, has not been written since, so that nobody took it out of the copying core's caches. It is there as long
// as what the core has copied meanwhile fits in beside it. Left out: what was written anew with the same bytes, which
// is taken for unchanged; a part that is unchanged; what else takes room there.
//
// All zeros is empty, so that it may lie in memory that a C library hands out.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace dryfly {

// Of bytes at an address of a process, which may have any name.
struct CopiedBytes {
  std::uint64_t owner;
  std::uint64_t begin;
  std::uint64_t count;
  std::uint64_t contents;  // fingerprint_of() them

  bool operator==(const CopiedBytes&) const = default;
  bool overlaps(const CopiedBytes& other) const {
    return owner == other.owner && begin < other.begin + other.count && other.begin < begin + count;
  }
};

class KeptCopies {
 public:
  static constexpr std::size_t copies_max = 64;

  // Within how many bytes of what was copied last they are, themselves among them; none where they were not copied
  // before, have changed, or are not within so many as there is room for. From now on they are what was copied last.
  std::optional<std::uint64_t> copy(const CopiedBytes& bytes, std::uint64_t room) {
    if (bytes.count > room) {
      count_ = 0;
      return std::nullopt;
    }
    std::optional<std::uint64_t> within;
    std::array<CopiedBytes, copies_max> latest;
    std::size_t count = 0;
    latest[count++] = bytes;
    std::uint64_t used = bytes.count;
    for (std::size_t i = 0; i < count_; ++i) {
      const CopiedBytes& earlier = copies_[i];
      if (bytes.overlaps(earlier)) {
        if (bytes == earlier) within = used;
        continue;
      }
      used += earlier.count;
      if (used > room) break;
      if (count < copies_max) latest[count++] = earlier;
    }
    std::copy_n(latest.begin(), count, copies_.begin());
    count_ = count;
    return within;
  }

 private:
  std::array<CopiedBytes, copies_max> copies_;  // the latest first
  std::size_t count_;
};

// Of bytes, behind those that `before` is the fingerprint of. The same in every run, and as fast as memory is read:
// eight chains of multiplications beside one another.
inline std::uint64_t fingerprint_of(const void* bytes, std::size_t count, std::uint64_t before = 0) {
  constexpr std::size_t lanes = 8;
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
  const auto next = [](std::uint64_t lane, std::uint64_t word) { return std::rotl(lane ^ word, 29) * factor; };
  const auto* from = static_cast<const unsigned char*>(bytes);
  std::array<std::uint64_t, lanes> lane{};
  for (std::size_t i = 0; i < lanes; ++i) lane[i] = before + i;
  std::array<std::uint64_t, lanes> words{};
  std::size_t at = 0;
  for (; at + sizeof words <= count; at += sizeof words) {
    std::memcpy(words.data(), from + at, sizeof words);
    for (std::size_t i = 0; i < lanes; ++i) lane[i] = next(lane[i], words[i]);
  }
  words.fill(0);
  if (at != count) std::memcpy(words.data(), from + at, count - at);
  std::uint64_t all = count;
  for (std::size_t i = 0; i < lanes; ++i) all = next(all, next(lane[i], words[i]));
  return all;
}

}  // namespace dryfly
