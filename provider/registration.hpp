// What it costs a process that its NIC may read and write its buffers: the cache of registrations of one domain.
//
// Models docs/model/registration.md: a buffer that the NIC is to move by DMA is looked for among the ranges that the
// driver has mapped. One that lies within such a range costs nothing beyond the call; another one costs a mapping of
// its pages. Room is made by ending the mapping that was used longest ago, and one whose memory is gone ends too, as
// the monitor sees it (provider/memory_watch.hpp). Without a cache each buffer is mapped and its mapping ended again.
//
// Where buffers are has no influence on any result, but which of them share pages has. Of the stack, whose place
// within a page is another one in every run, the distance from its beginning counts.
//
// Left out: that a mapping which is in use cannot make room. It counts as no longer used when the call returns, unless
// it is a region's of the program (fi_mr_reg).
#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/environment.hpp"
#include "provider/memory_watch.hpp"
#include "wire/wire.hpp"

namespace dryfly::provider {

struct Domain;
class Session;

class Registrations {
 public:
  // `paged`: on demand, so that nothing is pinned.
  void open(const wire::RegistrationCosts& costs, const RegistrationSettings& settings, bool paged);
  // Gives its memory back; costs nothing, for a domain is closed at the end.
  void close();

  // Whether the bytes lie in what the last buffer lay in, so that nothing is to be done.
  bool holds_as_before(std::uint64_t begin, std::uint64_t length) const {
    return begin >= recent_.begin && begin + length <= recent_.end && !memory_has_gone();
  }
  // What it costs to let the NIC use this buffer now, in picoseconds.
  std::uint64_t use(std::uint64_t begin, std::uint64_t length, wire::RegistrationCounts& counts);
  // Where the NIC finds the buffer that was used or held last, as wire::BufferPages; 0 where nobody asks.
  std::uint64_t pages_of(std::uint64_t begin) const;
  // The same for a region of the program, which keeps its mapping until it is released.
  std::uint64_t hold(std::uint64_t begin, std::uint64_t length, wire::RegistrationCounts& counts,
                     std::uint32_t& mapping);
  std::uint64_t release(std::uint32_t mapping, wire::RegistrationCounts& counts);
  // A list entry for a region of the program, or its end.
  std::uint64_t link_ps() const { return costs_->link_ps; }
  // The monitor has seen it go. Its mappings are ended with the next buffer.
  void memory_gone(MemoryRange bytes);

  Registrations* next;  // of those that are told so

 private:
  static constexpr std::uint32_t none = 0;
  // A mapping of the driver. Its number is its place in `mappings_` and one more.
  struct Mapping {
    MemoryRange range;
    std::uint64_t page_bytes;
    std::uint64_t pages;    // that are charged
    std::uint32_t holders;  // regions of the program
    bool is_cached;         // in `order_`
    std::uint64_t name;     // of its first page, as wire::BufferPages has it
    std::uint32_t older;    // of those that may make room; the next one of those that are free or dead
    std::uint32_t newer;
  };
  // A mapping as `pages_of` needs it.
  struct Named {
    MemoryRange range;   // where the process has it
    std::uint64_t page;  // its first one
    std::uint8_t shift;
  };
  // No range lies within another one, so that both ends grow.
  struct Place {
    MemoryRange range;
    std::uint32_t mapping;
  };

  Mapping& at(std::uint32_t mapping) { return mappings_[mapping - 1]; }
  bool is_full() const {
    return !covers_all_ && (cached_ >= settings_->ranges_max || cached_bytes_ >= settings_->bytes_max);
  }
  bool has_no_cache() const { return settings_->monitor == MemoryMonitor::disabled || settings_->ranges_max == 0; }

  // What its pages are called. Those of a process follow each other as they were mapped, but where a longer page may
  // have several mappings they go by where they are in it.
  std::uint64_t name_for(const Mapping& made, bool in_one_heap) const;
  // A buffer that begins there, and in terms of mappings at `place`, has been found or mapped.
  void found(std::uint32_t mapping, std::uint64_t begin, std::uint64_t place);
  std::uint64_t name_only(std::uint64_t begin, std::uint64_t length);
  // The mapping that holds them, now the one used last, or none.
  std::uint32_t find(MemoryRange bytes);
  std::uint64_t map_cached(MemoryRange bytes, wire::RegistrationCounts& counts, std::uint32_t& mapping);
  std::uint64_t map(MemoryRange bytes, std::uint64_t length, wire::RegistrationCounts& counts, std::uint32_t& mapping);
  std::uint64_t unmap(std::uint32_t mapping, wire::RegistrationCounts& counts);
  std::uint64_t make_room(wire::RegistrationCounts& counts);
  std::uint64_t end_dead(wire::RegistrationCounts& counts);
  // Out of the cache, and where no region holds it, to be ended.
  void forget(std::uint32_t place);
  void forget_within(MemoryRange bytes);
  std::uint32_t first_from(std::uint64_t begin) const;
  void keep(std::uint32_t mapping);
  std::uint32_t take_free();
  void add_newest(std::uint32_t mapping);
  void take_out(std::uint32_t mapping);

  const wire::RegistrationCosts* costs_;
  const RegistrationSettings* settings_;
  bool paged_;
  bool covers_all_;  // one mapping of all memory, once and for all
  Mapping* mappings_;
  std::uint32_t mappings_room_;
  std::uint32_t mappings_used_;
  std::uint32_t free_;
  Place* order_;
  std::uint32_t order_room_;
  std::uint32_t cached_;
  std::uint64_t cached_bytes_;
  Named named_;         // the mapping that was used last, for `pages_of`
  MemoryRange recent_;  // where the process has it; empty when there is something to be done first
  std::uint32_t oldest_;
  std::uint32_t newest_;
  std::uint32_t dead_;         // forgotten, to be ended
  std::uint64_t invalidated_;  // of these: not counted yet
};

// A buffer that the NIC is to move by DMA, other than the last one: charges what that costs.
void register_other_buffer(const Session& session, Domain& domain, const void* buffer, std::size_t length);
// fi_mr_reg, and the end of such a region.
std::uint32_t register_region(const Session& session, Domain& domain, const void* buffer, std::size_t length,
                              std::uint64_t& pages);
void release_region(const Session& session, Domain& domain, std::uint32_t mapping);
// A region becomes one that others can reach, or no longer is.
void charge_link(const Session& session, Domain& domain);

}  // namespace dryfly::provider
