// The two lists of a rank: receives that wait for a message, and messages that wait for a receive, oldest first.
#pragma once

#include <cstdint>

#include "core/motif/job/records.hpp"

namespace dryfly::motif {

inline void append(Records& records, RecordList& list, std::uint32_t record) {
  records[record].next = no_record;
  if (list.first == no_record) {
    list.first = record;
  } else {
    records[list.last].next = record;
  }
  list.last = record;
}

// Takes the first that fits out of the list; no_record: none does.
template <class Fits>
std::uint32_t take_first(Records& records, RecordList& list, Fits fits) {
  std::uint32_t before = no_record;
  for (std::uint32_t at = list.first; at != no_record; before = at, at = records[at].next) {
    if (!fits(records[at])) continue;
    (before == no_record ? list.first : records[before].next) = records[at].next;
    if (list.last == at) list.last = before;
    return at;
  }
  return no_record;
}

}  // namespace dryfly::motif
