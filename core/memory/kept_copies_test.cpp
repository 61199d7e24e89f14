#include "core/memory/kept_copies.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace dryfly {
namespace {

CopiedBytes bytes(std::uint64_t owner, std::uint64_t begin, std::uint64_t count, std::uint64_t contents = 1) {
  return {.owner = owner, .begin = begin, .count = count, .contents = contents};
}

bool is_kept(KeptCopies& copies, const CopiedBytes& copied, std::uint64_t room) {
  return copies.copy(copied, room).has_value();
}

TEST_CASE("what comes again unchanged is in the caches of the core that copied it") {
  KeptCopies copies{};
  CHECK_FALSE(is_kept(copies, bytes(1, 4096, 1000), 10'000));
  CHECK(is_kept(copies, bytes(1, 4096, 1000), 10'000));
  CHECK_FALSE(is_kept(copies, bytes(1, 4096, 1000, 2), 10'000));
  CHECK_FALSE(is_kept(copies, bytes(1, 4096, 1000, 1), 10'000));
  CHECK_FALSE(is_kept(copies, bytes(2, 4096, 1000), 10'000));  // another process has an address of that name
  CHECK(is_kept(copies, bytes(1, 4096, 1000), 10'000));
}

TEST_CASE("it goes when others need the room, the one that was copied longest ago first") {
  KeptCopies copies{};
  for (const std::uint64_t owner : {1, 2, 3}) copies.copy(bytes(owner, 0, 1000), 3000);
  CHECK(is_kept(copies, bytes(1, 0, 1000), 3000));
  copies.copy(bytes(4, 0, 1000), 3000);
  CHECK(is_kept(copies, bytes(3, 0, 1000), 3000));
  CHECK(is_kept(copies, bytes(1, 0, 1000), 3000));
  CHECK_FALSE(is_kept(copies, bytes(2, 0, 1000), 3000));
}

TEST_CASE("it is as far away as what has been copied since is long") {
  KeptCopies copies{};
  copies.copy(bytes(1, 0, 1000), 10'000);
  CHECK(copies.copy(bytes(1, 0, 1000), 10'000) == 1000);
  copies.copy(bytes(2, 0, 500), 10'000);
  copies.copy(bytes(3, 0, 200), 10'000);
  CHECK(copies.copy(bytes(1, 0, 1000), 10'000) == 1700);
  CHECK(copies.copy(bytes(1, 0, 1000), 10'000) == 1000);
}

TEST_CASE("what is too long for caches is never there, and takes all else out") {
  KeptCopies copies{};
  copies.copy(bytes(1, 0, 1000), 3000);
  CHECK_FALSE(is_kept(copies, bytes(2, 0, 3001), 3000));
  CHECK_FALSE(is_kept(copies, bytes(2, 0, 3001), 3000));
  CHECK_FALSE(is_kept(copies, bytes(1, 0, 1000), 3000));
}

TEST_CASE("a range takes no room twice") {
  KeptCopies copies{};
  copies.copy(bytes(2, 0, 1000), 3000);
  copies.copy(bytes(1, 0, 1500), 3000);
  copies.copy(bytes(1, 500, 1500), 3000);
  CHECK(is_kept(copies, bytes(2, 0, 1000), 3000));
  CHECK_FALSE(is_kept(copies, bytes(1, 0, 1500), 3000));
}

TEST_CASE("as many are kept as there is a list for") {
  KeptCopies copies{};
  for (std::uint64_t owner = 0; owner <= KeptCopies::copies_max; ++owner) copies.copy(bytes(owner, 0, 1), 1'000'000);
  CHECK(is_kept(copies, bytes(1, 0, 1), 1'000'000));
  CHECK_FALSE(is_kept(copies, bytes(0, 0, 1), 1'000'000));
}

TEST_CASE("any byte changes the fingerprint, and so does how many there are and what is before them") {
  std::array<unsigned char, 200> data{};
  for (std::size_t count = 0; count < data.size(); ++count) {
    const std::uint64_t plain = fingerprint_of(data.data(), count);
    CHECK(plain == fingerprint_of(data.data(), count));
    CHECK(plain != fingerprint_of(data.data(), count + 1));
    CHECK(plain != fingerprint_of(data.data(), count, 1));
    for (std::size_t at = 0; at < count; ++at) {
      data[at] = 1;
      CHECK(plain != fingerprint_of(data.data(), count));
      data[at] = 0;
    }
  }
}

TEST_CASE("words that change places change the fingerprint") {
  std::array<std::uint64_t, 32> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i;
  const std::uint64_t plain = fingerprint_of(words.data(), sizeof words);
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::swap(words[0], words[i]);
    CHECK(plain != fingerprint_of(words.data(), sizeof words));
    std::swap(words[0], words[i]);
  }
}

}  // namespace
}  // namespace dryfly
