// For each NIC the transfers that have sent something and are not yet acknowledged, in no order, by whom they go to:
// what is outstanding for a pair is asked whenever an end-point turns hot. They lie side by side, in lines of the cache
// that hang together, for such a question looks at all of them.
#pragma once

#include <array>
#include <cstdint>

#include "core/network/fabric/pool.hpp"
#include "core/unit/fetch.hpp"

namespace dryfly::fabric {

class UnderWay {
 public:
  // Of one NIC.
  struct List {
    std::uint32_t head = none;
  };
  struct Entry {
    std::uint32_t to = 0;  // whatever the caller tells them apart by
    std::uint32_t transfer = none;
  };

  // Returns its place, which stays until `remove` says that another has moved.
  std::uint32_t add(List& list, const Entry& entry) {
    if (list.head == none || lines_[list.head].count == entries_per_line) {
      const std::uint32_t line = lines_.take();
      lines_[line] = Line{};
      lines_[line].next = list.head;
      list.head = line;
    }
    Line& line = lines_[list.head];
    line.entries[line.count] = entry;
    return list.head * places_per_line + line.count++;
  }

  // Returns the transfer that has moved to this place, which may be the removed one itself.
  std::uint32_t remove(List& list, std::uint32_t place) {
    const std::uint32_t head = list.head;
    Line& line = lines_[head];
    const Entry moved = line.entries[--line.count];
    lines_[place / places_per_line].entries[place % places_per_line] = moved;
    if (line.count == 0 && line.next != none) {  // the NIC keeps its last line
      list.head = line.next;
      lines_.give_back(head);
    }
    return moved.transfer;
  }

  template <class Visit>
  void visit(const List& list, std::uint32_t to, Visit visit) const {
    for (std::uint32_t index = list.head; index != none; index = lines_[index].next) {
      const Line& line = lines_[index];
      for (std::uint32_t i = 0; i < line.count; ++i) {
        if (line.entries[i].to == to) visit(line.entries[i].transfer);
      }
    }
  }

  void prefetch(const List& list) const {
    if (list.head != none) fetch_line(&lines_[list.head]);
  }

 private:
  static constexpr std::uint32_t entries_per_line = 7;
  static constexpr std::uint32_t places_per_line = 8;
  struct alignas(64) Line {
    std::array<Entry, entries_per_line> entries{};
    std::uint32_t count = 0;
    std::uint32_t next = none;
  };
  static_assert(sizeof(Line) == 64);

  Pool<Line> lines_;
};

}  // namespace dryfly::fabric
