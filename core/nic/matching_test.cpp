// The matching lists against the plainest model there is: two vectors searched from the front.
#include "core/nic/matching.hpp"

#include <doctest/doctest.h>

#include <ctime>
#include <vector>

#include "core/unit/random.hpp"

namespace dryfly::nic {
namespace {

bool accepts(const Pattern& pattern, const Label& label) {
  if (pattern.tagged != label.tagged) return false;
  if (!pattern.any_source && pattern.source != label.source) return false;
  return !pattern.tagged || ((pattern.tag ^ label.tag) & ~pattern.ignore) == 0;
}

// Draws small values so that patterns and labels meet often.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : stream_(seed, 0, Purpose::test) {}
  std::uint32_t below(std::uint32_t bound) { return stream_.below(count_++, bound); }

  Label label() { return {below(4) != 0, EndpointId{below(3)}, below(16)}; }
  // `masks` different ignore masks, all within the four bits that tags use.
  Pattern pattern(std::uint32_t masks) {
    return {below(4) != 0, below(3) == 0, EndpointId{below(3)}, below(16), masks == 1 ? 0 : below(masks)};
  }

 private:
  RandomStream stream_;
  std::uint64_t count_ = 0;
};

struct PlainPosted {
  struct Entry {
    Pattern pattern;
    std::uint32_t slot;
  };
  std::vector<Entry> entries;

  std::size_t find(const Label& label) const {
    std::size_t i = 0;
    while (i < entries.size() && !accepts(entries[i].pattern, label)) ++i;
    return i;
  }
};

struct PlainUnexpected {
  struct Entry {
    Label label;
    std::uint32_t slot;
  };
  std::vector<Entry> entries;

  std::size_t find(const Pattern& pattern) const {
    std::size_t i = 0;
    while (i < entries.size() && !accepts(pattern, entries[i].label)) ++i;
    return i;
  }
};

TEST_CASE("a message finds the oldest posted receive that accepts it, as in a plain list") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Dice dice(seed);
    PostedReceives posted;
    PlainPosted plain;
    for (std::uint32_t round = 0; round < 3000; ++round) {
      // The population grows for a while and shrinks for a while.
      if (dice.below(100) < (round % 1000 < 500 ? 65U : 35U)) {
        const Pattern pattern = dice.pattern(16);
        plain.entries.push_back({pattern, posted.post(pattern, round)});
      } else if (!plain.entries.empty() && dice.below(5) == 0) {
        const std::size_t victim = dice.below(static_cast<std::uint32_t>(plain.entries.size()));
        posted.remove(plain.entries[victim].slot);
        plain.entries.erase(plain.entries.begin() + static_cast<std::ptrdiff_t>(victim));
      } else {
        const Label label = dice.label();
        const std::size_t expected = plain.find(label);
        const std::uint32_t slot = posted.oldest_for(label);
        REQUIRE(slot == (expected == plain.entries.size() ? no_match : plain.entries[expected].slot));
        if (slot == no_match) continue;
        posted.remove(slot);
        plain.entries.erase(plain.entries.begin() + static_cast<std::ptrdiff_t>(expected));
      }
      REQUIRE(posted.size() == plain.entries.size());
    }
  }
}

TEST_CASE("a receive finds the oldest unexpected message it accepts, as in a plain list") {
  // With one mask there are at most 2 x 2 shapes of pattern, with 16 there are more than the index takes.
  for (const std::uint32_t masks : {1U, 2U, 16U}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Dice dice(seed);
      UnexpectedMessages unexpected;
      PlainUnexpected plain;
      for (std::uint32_t round = 0; round < 3000; ++round) {
        if (dice.below(100) < (round % 1000 < 500 ? 70U : 30U)) {
          const Label label = dice.label();
          plain.entries.push_back({label, unexpected.add(label, round)});
        } else {
          const Pattern pattern = dice.pattern(masks);
          const std::size_t expected = plain.find(pattern);
          const std::uint32_t slot = unexpected.oldest_for(pattern);
          REQUIRE(slot == (expected == plain.entries.size() ? no_match : plain.entries[expected].slot));
          if (slot == no_match || dice.below(4) == 0) continue;  // a peek leaves it where it is
          unexpected.remove(slot);
          plain.entries.erase(plain.entries.begin() + static_cast<std::ptrdiff_t>(expected));
        }
        REQUIRE(unexpected.size() == plain.entries.size());
        REQUIRE(unexpected.oldest() == (plain.entries.empty() ? no_match : plain.entries.front().slot));
      }
    }
  }
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST_CASE("200,000 unexpected messages taken in reverse order cost linearly") {
  // A list walked from the front would take 2 x 10^10 steps, at least ten seconds; the index takes some 0.1 s.
  constexpr std::uint32_t count = 200'000;
  const double begin = cpu_seconds();
  UnexpectedMessages unexpected;
  for (std::uint32_t i = 0; i < count; ++i) unexpected.add({true, EndpointId{i % 64}, i}, i);
  for (std::uint32_t i = count; i-- > 0;) {
    const Pattern pattern{true, i % 2 == 0, EndpointId{i % 64}, i, std::uint64_t{0xff} << 40};
    const std::uint32_t slot = unexpected.oldest_for(pattern);
    REQUIRE(slot != no_match);
    REQUIRE(unexpected.value(slot) == i);
    unexpected.remove(slot);
  }
  CHECK(unexpected.size() == 0);
  CHECK(cpu_seconds() - begin < 4.0);
}

TEST_CASE("200,000 messages of one tag, and as many receives, are first in, first out at linear cost") {
  constexpr std::uint32_t count = 200'000;
  const double begin = cpu_seconds();
  UnexpectedMessages unexpected;
  PostedReceives posted;
  const Label label{true, EndpointId{1}, 7};
  const Pattern pattern{true, true, EndpointId{}, 7, 0};
  for (std::uint32_t i = 0; i < count; ++i) {
    unexpected.add(label, i);
    posted.post(pattern, i);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t message = unexpected.oldest_for(pattern);
    const std::uint32_t receive = posted.oldest_for(label);
    REQUIRE(unexpected.value(message) == i);
    REQUIRE(posted.value(receive) == i);
    unexpected.remove(message);
    posted.remove(receive);
  }
  CHECK(cpu_seconds() - begin < 4.0);
}

TEST_CASE("find gives the receive posted first, whichever slot it got") {
  PostedReceives posted;
  const Pattern pattern{};
  const std::uint32_t first = posted.post(pattern, 1);
  posted.post(pattern, 5);
  posted.remove(first);
  posted.post(pattern, 5);  // takes the free slot, which is the lower one
  const std::uint32_t found = posted.find([](std::uint32_t value) { return value == 5; });
  CHECK(found == posted.oldest_for(Label{}));
  CHECK(posted.find([](std::uint32_t value) { return value == 1; }) == no_match);
}

}  // namespace
}  // namespace dryfly::nic
