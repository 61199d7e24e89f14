// The long copies under way on a node, which share what its parts carry.
//
// Models docs/model/on-node.md#memory-of-a-node: where those who use a part want more than it carries, all of them are
// slowed alike, to the same share of what each does by itself; one that another part slows more takes less, and leaves
// the rest. This holds at each instant, so a copy's end is not known when it begins: whoever makes it looks again when
// it would be over if nothing slowed it any more, until it is. What short copies and NICs have taken of a part
// (core/memory/moved.hpp) is not there for long ones, and what these take not for the others.
//
// All zeros is none, so that they may lie in memory that ranks share. Whoever uses them goes in turn.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory/copy_loads.hpp"
#include "core/memory/moved.hpp"

namespace dryfly {

struct LongCopy {
  struct Rate {
    std::uint32_t part;
    std::uint64_t bytes;  // that it moves by itself in 2^32 ps
  };
  std::uint64_t begin_ps;
  std::uint64_t left_ps;  // what it takes from there by itself
  std::uint64_t want_ps;  // of the piece of time that is being divided
  std::uint32_t is_under_way;
  std::uint32_t is_open;  // and has got nothing yet of that piece
  std::uint32_t count;
  std::array<Rate, CopyLoads::most> rates;

  std::span<const Rate> loads() const { return {rates.data(), count}; }
};

// `Parts` has count(), account(part), a MovedMemory, and room(part), bytes of an interval; 0: as much as is asked for.
template <class Parts>
class LongCopies {
 public:
  struct Clock {
    std::uint64_t until_ps;  // what has happened is known up to there
    std::uint64_t under_way;
  };
  static constexpr std::size_t parts_max = 512;
  // What takes no longer by itself is a short one, which is divided when it begins.
  static constexpr std::uint64_t short_ps = 2 * MovedMemory::interval_ps;

  // When to look again, or when it is over.
  struct Progress {
    std::uint64_t at_ps;
    bool is_over;
  };

  LongCopies(Clock& clock, std::span<LongCopy> copies, Parts parts) : clock_(clock), copies_(copies), parts_(parts) {}

  // A place for another; where all are taken, their number.
  static std::size_t idle(std::span<const LongCopy> copies) {
    const auto found = std::ranges::find(copies, 0U, &LongCopy::is_under_way);
    return static_cast<std::size_t>(found - copies.begin());
  }

  // When so much has moved that begins then and by itself takes so long, if it is divided now.
  std::uint64_t short_end(std::uint64_t begin_ps, std::uint64_t alone_ps, const CopyLoads& loads) {
    std::uint64_t end_ps = begin_ps + alone_ps;
    for (const CopyLoads::Load& load : loads) {
      const std::uint64_t room = parts_.room(load.part);
      if (room != 0) end_ps = std::max(end_ps, parts_.account(load.part).end_of(begin_ps, alone_ps, load.bytes, room));
    }
    return end_ps;
  }
  // The same of what comes before all others.
  void take_first(std::uint64_t begin_ps, std::uint64_t alone_ps, const CopyLoads& loads) {
    for (const CopyLoads::Load& load : loads) {
      const std::uint64_t room = parts_.room(load.part);
      if (room != 0) parts_.account(load.part).end_of_first(begin_ps, alone_ps, load.bytes, room);
    }
  }

  // In a place that is idle.
  Progress begin(std::size_t place, std::uint64_t begin_ps, std::uint64_t alone_ps, const CopyLoads& loads) {
    if (alone_ps <= short_ps) return {short_end(begin_ps, alone_ps, loads), true};
    if (clock_.under_way++ == 0) clock_.until_ps = std::max(clock_.until_ps, begin_ps);
    LongCopy& copy = copies_[place];
    copy = {.begin_ps = std::max(begin_ps, clock_.until_ps),
            .left_ps = alone_ps,
            .want_ps = 0,
            .is_under_way = 1,
            .is_open = 0,
            .count = 0,
            .rates = {}};
    for (const CopyLoads::Load& load : loads) {
      if (parts_.room(load.part) == 0) continue;
      const LongCopy::Rate rate{load.part, portion(load.bytes, std::uint64_t{1} << rate_bits, alone_ps) + 1};
      copy.rates[copy.count++] = rate;
      parts_.account(rate.part).begins(in_interval(rate));
    }
    return {copy.begin_ps + next_look(copy), false};
  }

  // At the instant that it was said to look again.
  Progress look(std::size_t place, std::uint64_t now_ps) {
    advance(now_ps);
    LongCopy& copy = copies_[place];
    if (copy.left_ps > MovedMemory::interval_ps) return {now_ps + next_look(copy), false};
    for (const LongCopy::Rate& rate : copy.loads()) parts_.account(rate.part).ends(in_interval(rate));
    --clock_.under_way;
    copy.is_under_way = 0;
    std::uint64_t end_ps = now_ps + copy.left_ps;
    if (copy.left_ps != 0) {
      for (const LongCopy::Rate& rate : copy.loads()) {
        const std::uint64_t bytes = (rate.bytes * copy.left_ps >> rate_bits) + 1;
        end_ps =
            std::max(end_ps, parts_.account(rate.part).end_of(now_ps, copy.left_ps, bytes, parts_.room(rate.part)));
      }
      copy.left_ps = 0;
    }
    return {end_ps, true};
  }

 private:
  static constexpr unsigned rate_bits = 32;
  static constexpr unsigned byte_bits = 16;   // what is divided is counted in parts of bytes
  static constexpr unsigned share_bits = 24;  // and so are shares of a whole
  static constexpr std::uint64_t whole = std::uint64_t{1} << share_bits;
  static constexpr std::uint64_t longest_look_ps = MovedMemory::intervals / 4 * MovedMemory::interval_ps;

  // Of a part, while a piece of time is being divided.
  struct Tally {
    std::uint64_t wanted;  // by those who have got nothing yet
    std::uint64_t left;
    std::uint64_t taken;
  };
  using Tallies = std::array<Tally, parts_max>;

  static std::uint64_t portion(std::uint64_t part, std::uint64_t by, std::uint64_t of) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(part) * by / of);
  }
  static std::uint64_t in_interval(const LongCopy::Rate& rate) {
    return rate.bytes * MovedMemory::interval_ps >> rate_bits;
  }
  static std::uint64_t wanted(const LongCopy& copy, const LongCopy::Rate& rate) {
    return rate.bytes * copy.want_ps >> (rate_bits - byte_bits);
  }
  static std::uint64_t next_look(const LongCopy& copy) { return std::min(copy.left_ps, longest_look_ps); }

  void advance(std::uint64_t now_ps) {
    while (clock_.until_ps < now_ps) {
      const std::uint64_t number = clock_.until_ps / MovedMemory::interval_ps;
      const std::uint64_t to_ps = std::min(now_ps, (number + 1) * MovedMemory::interval_ps);
      divide(number, clock_.until_ps, to_ps);
      clock_.until_ps = to_ps;
    }
  }

  // A piece of an interval, among those who want something of it.
  void divide(std::uint64_t number, std::uint64_t from_ps, std::uint64_t to_ps) {
    Tallies tallies;
    const std::uint32_t count = parts_.count();
    std::fill_n(tallies.begin(), count, Tally{});
    for (LongCopy& copy : copies_) open(copy, from_ps, to_ps, tallies);
    const std::uint64_t rest_ps = (number + 1) * MovedMemory::interval_ps - from_ps;
    for (std::uint32_t part = 0; part < count; ++part) {
      if (tallies[part].wanted == 0) continue;
      const std::uint64_t left = parts_.account(part).left(number, parts_.room(part));
      tallies[part].left = portion(left << byte_bits, to_ps - from_ps, rest_ps);
    }
    for (Tightest part = tightest(tallies); part.share < whole; part = tightest(tallies)) {
      for (LongCopy& copy : copies_) {
        const auto uses = [&](const LongCopy::Rate& rate) { return rate.part == part.number; };
        if (copy.is_open != 0 && std::ranges::any_of(copy.loads(), uses)) give(copy, part.share, tallies);
      }
    }
    for (LongCopy& copy : copies_) {
      if (copy.is_open != 0) give(copy, whole, tallies);
    }
    for (std::uint32_t part = 0; part < count; ++part) {
      constexpr std::uint64_t byte = std::uint64_t{1} << byte_bits;
      if (tallies[part].taken != 0) parts_.account(part).take(number, (tallies[part].taken + byte - 1) / byte);
    }
  }
  static void open(LongCopy& copy, std::uint64_t from_ps, std::uint64_t to_ps, Tallies& tallies) {
    const std::uint64_t begin_ps = std::max(from_ps, copy.begin_ps);
    copy.is_open = copy.left_ps != 0 && begin_ps < to_ps ? 1 : 0;
    if (copy.is_open == 0) return;
    copy.want_ps = std::min(to_ps - begin_ps, copy.left_ps);
    for (const LongCopy::Rate& rate : copy.loads()) tallies[rate.part].wanted += wanted(copy, rate);
  }
  // Which part slows those who have got nothing yet the most, and to what share.
  struct Tightest {
    std::uint32_t number;
    std::uint64_t share;
  };
  Tightest tightest(const Tallies& tallies) const {
    Tightest found{0, whole};
    for (std::uint32_t part = 0; part < parts_.count(); ++part) {
      const Tally& tally = tallies[part];
      if (tally.wanted <= tally.left) continue;
      const std::uint64_t share = portion(tally.left, whole, tally.wanted);
      if (share < found.share) found = {part, share};
    }
    return found;
  }
  static void give(LongCopy& copy, std::uint64_t share, Tallies& tallies) {
    copy.is_open = 0;
    copy.left_ps -= portion(copy.want_ps, share, whole);
    for (const LongCopy::Rate& rate : copy.loads()) {
      const std::uint64_t bytes = wanted(copy, rate);
      const std::uint64_t given = portion(bytes, share, whole);
      Tally& tally = tallies[rate.part];
      tally.wanted -= bytes;
      tally.left -= std::min(tally.left, given);
      tally.taken += given;
    }
  }

  Clock& clock_;
  std::span<LongCopy> copies_;
  Parts parts_;
};

}  // namespace dryfly
