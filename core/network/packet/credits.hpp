// Credit flow control: the sender of a link knows how much room the receiving buffer has left, one line of account
// for each virtual channel. Room that becomes free is known to the sender one flight time later. Returns on their
// way cost no event: each is noted with the instant of its arrival and counts from then on. The first to arrive is
// noted in the line itself, since there is seldom a second.
//
// A packet may be sent when there is room for one of the largest size, whatever its own: then one look at a line
// answers for every packet that waits for it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "core/network/fabric/pool.hpp"
#include "core/unit/fetch.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

class Credits {
 public:
  struct Return {
    std::uint64_t at_ps = never.ps;
    std::uint32_t bytes = 0;
    std::uint32_t next = none;
  };
  struct alignas(32) Line {  // of which none lies in two lines of the cache
    Return first;
    std::uint32_t free_bytes = 0;
  };

  Credits() = default;  // without lines
  // Over `lines`, which it fills if they are none yet.
  Credits(LargeVector<Line>& lines, std::size_t count, Bytes buffer, Bytes frame_max)
      : buffer_bytes_(static_cast<std::uint32_t>(buffer.count)),
        frame_max_bytes_(static_cast<std::uint32_t>(frame_max.count)) {
    if (lines.empty()) lines.assign(count, Line{{}, buffer_bytes_});
    lines_ = lines;
  }

  bool empty() const { return lines_.empty(); }

  void prefetch(std::size_t index) const { fetch_line(lines_.data() + index); }

  bool ready(std::size_t index, std::uint64_t now_ps) {
    Line& line = lines_[index];
    if (line.free_bytes >= frame_max_bytes_) return true;
    settle(line, now_ps);
    return line.free_bytes >= frame_max_bytes_;
  }

  void take(std::size_t index, std::uint32_t bytes) {
    DRYFLY_CHECK(lines_[index].free_bytes >= bytes);
    lines_[index].free_bytes -= bytes;
  }

  void give_back(std::size_t index, std::uint32_t bytes, std::uint64_t at_ps, std::uint64_t now_ps) {
    Line& line = lines_[index];
    settle(line, now_ps);
    Return fresh{at_ps, bytes, none};
    if (line.first.at_ps == never.ps) {
      line.first = fresh;
      return;
    }
    // Ordered by arrival. Packets leave one buffer by several ports, so a later one may be home first.
    if (at_ps < line.first.at_ps) {
      std::swap(fresh.at_ps, line.first.at_ps);
      std::swap(fresh.bytes, line.first.bytes);
    }
    insert_behind(line, fresh);
  }

  // When the line will be ready by the returns under way; never.ps if these do not suffice.
  std::uint64_t ready_at(std::size_t index, std::uint64_t now_ps) {
    if (ready(index, now_ps)) return now_ps;
    std::uint64_t bytes = lines_[index].free_bytes;
    for (const Return* home = &lines_[index].first; home->at_ps != never.ps; home = &returns_[home->next]) {
      bytes += home->bytes;
      if (bytes >= frame_max_bytes_) return home->at_ps;
      if (home->next == none) break;
    }
    return never.ps;
  }

  // Bytes of credit that are not home.
  std::uint64_t outstanding(std::uint64_t now_ps) {
    std::uint64_t bytes = 0;
    for (Line& line : lines_) {
      settle(line, now_ps);
      DRYFLY_CHECK(line.free_bytes <= buffer_bytes_);
      bytes += buffer_bytes_ - line.free_bytes;
    }
    return bytes;
  }

 private:
  void settle(Line& line, std::uint64_t now_ps) {
    while (line.first.at_ps <= now_ps) {
      line.free_bytes += line.first.bytes;
      const std::uint32_t next = line.first.next;
      if (next == none) {
        line.first = {};
        return;
      }
      line.first = returns_[next];
      returns_.give_back(next);
    }
  }

  void insert_behind(Line& line, Return fresh) {
    const std::uint32_t index = returns_.take();
    std::uint32_t* after = &line.first.next;
    while (*after != none && returns_[*after].at_ps <= fresh.at_ps) after = &returns_[*after].next;
    fresh.next = *after;
    returns_[index] = fresh;
    *after = index;
  }

  std::span<Line> lines_;
  Pool<Return> returns_;
  std::uint32_t buffer_bytes_ = 0;
  std::uint32_t frame_max_bytes_ = 0;
};

}  // namespace dryfly::fabric
