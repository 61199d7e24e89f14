// Lists of records, such as the messages of a rank that wait for a receive, oldest first.
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

// Takes the first message that the receive of that source and tag can have out of the list; no_record: there is none.
inline std::uint32_t take_message(Records& records, RecordList& list, std::uint32_t source, std::uint32_t tag) {
  std::uint32_t before = no_record;
  for (std::uint32_t at = list.first; at != no_record; before = at, at = records[at].next) {
    if ((tag != any_tag && records[at].tag != tag) || (source != any_rank && records[at].rank != source)) continue;
    (before == no_record ? list.first : records[before].next) = records[at].next;
    if (list.last == at) list.last = before;
    return at;
  }
  return no_record;
}

}  // namespace dryfly::motif
