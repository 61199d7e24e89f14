// The two lists of a rank: receives that wait for a message, and messages that wait for a receive, oldest first.
//
// Each message looks through the receives of its target, and these are nowhere in the cache, so that what it compares
// lies in one place.
#pragma once

#include <cstdint>
#include <vector>

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

// And the first receive that wants a message of that source and tag.
inline std::uint32_t take_receive(std::vector<Posted>& posted, std::uint32_t source, std::uint32_t tag) {
  for (auto at = posted.begin(); at != posted.end(); ++at) {
    if ((at->tag != tag && at->tag != any_tag) || (at->source != source && at->source != any_rank)) continue;
    const std::uint32_t record = at->record;
    posted.erase(at);
    return record;
  }
  return no_record;
}

}  // namespace dryfly::motif
