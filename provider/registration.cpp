#include "provider/registration.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>

#include "provider/device_memory.hpp"
#include "provider/domain.hpp"
#include "provider/huge_pages.hpp"
#include "provider/process.hpp"

extern "C" void* __libc_stack_end
    __attribute__((weak));  // where the program's stack begins, as the dynamic linker found it

namespace dryfly::provider {

namespace {

constexpr std::uint64_t fault_bytes = 64 * 1024;  // the driver's pri_shift: what it brings in at a fault
constexpr std::uint64_t stack_place = std::uint64_t{1} << 62;

// How far the stack may reach down. Where it may grow without limit there is nothing else below it for long.
std::uint64_t stack_bytes() {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most;
  return std::min<std::uint64_t>(limit.rlim_cur, most);
}

// Of the stack the distance from its beginning counts, of anything else where it is.
std::uint64_t place_of(std::uint64_t begin) {
  static const std::uint64_t bytes = stack_bytes();
  const auto stack_end = &__libc_stack_end != nullptr ? reinterpret_cast<std::uint64_t>(__libc_stack_end) : 0;
  return begin < stack_end && stack_end - begin <= bytes ? stack_place - (stack_end - begin) : begin;
}

MemoryRange range_of(std::uint64_t begin, std::uint64_t length) {
  const std::uint64_t place = place_of(begin);
  return {place, place + length};
}

// Of this computer, on which the program's memory lies: where a longer page begins would be another place in every run.
constexpr std::uint64_t own_page = 4096;

MemoryRange whole_pages(MemoryRange bytes, std::uint64_t page) {
  return {bytes.begin & ~(page - 1), (bytes.end + page - 1) & ~(page - 1)};
}

// Of the process: its domains on one NIC share the NIC's cache.
struct Names {
  std::uint64_t next;          // of what is mapped next, by units of 4 KiB
  std::uint64_t heap_mapping;  // the first on a heap of huge pages: where in memory
};
constinit Names names{};
constexpr std::uint64_t heap_names = std::uint64_t{1} << 38;  // of that mapping
constexpr std::uint32_t name_shift = 12;
constexpr std::uint64_t pages_apart = 8;  // what has so many begins at a multiple, as the driver's contexts do

// Room for one more, or false.
template <class T>
bool grow(T*& all, std::uint32_t& room, std::uint32_t used) {
  if (used < room) return true;
  const std::uint32_t more = room == 0 ? 64 : 2 * room;
  auto* moved = static_cast<T*>(realloc(all, more * sizeof(T)));
  if (moved == nullptr) return false;
  all = moved;
  room = more;
  return true;
}

}  // namespace

void Registrations::open(const wire::RegistrationCosts& costs, const RegistrationSettings& settings, bool paged) {
  costs_ = &costs;
  settings_ = &settings;
  paged_ = paged;
  // As cxip_iomm_init: unpinned, and translated by the processor.
  covers_all_ = paged && settings.translates && costs.translates != 0;
  if (settings.heap_page != 0) use_huge_heap(settings.heap_page);
  watch_memory_for(*this);
}

void Registrations::close() {
  stop_watching_for(*this);
  free(mappings_);
  free(order_);
}

std::uint64_t Registrations::use(std::uint64_t begin, std::uint64_t length, wire::RegistrationCounts& counts) {
  if (covers_all_) return name_only(begin, length);
  const MemoryRange bytes = range_of(begin, length);
  std::uint32_t mapping = none;
  if (has_no_cache()) {
    ++counts.uncached;
    const std::uint64_t mapped_ps = map(bytes, length, counts, mapping);
    found(mapping, begin, bytes.begin);
    return mapped_ps + unmap(mapping, counts);
  }
  const std::uint64_t ps = map_cached(bytes, counts, mapping);
  found(mapping, begin, bytes.begin);
  if (mapping == none) return ps;
  if (!at(mapping).is_cached) return ps + unmap(mapping, counts);
  const MemoryRange& range = at(mapping).range;
  recent_ = {begin - (bytes.begin - range.begin), begin + (range.end - bytes.begin)};
  return ps;
}

// The processor translates all memory, and nothing is mapped; yet what lies together has names in a row, and what has
// gone other ones when it comes back.
std::uint64_t Registrations::name_only(std::uint64_t begin, std::uint64_t length) {
  if (costs_->names_pages == 0) return 0;
  wire::RegistrationCounts uncounted{};
  const MemoryRange bytes = range_of(begin, length);
  std::uint32_t mapping = none;
  map_cached(bytes, uncounted, mapping);
  found(mapping, begin, bytes.begin);
  return 0;
}

std::uint64_t Registrations::name_for(const Mapping& made, bool in_one_heap) const {
  if (costs_->names_pages == 0) return 0;
  if (in_one_heap) {
    if (names.heap_mapping == 0) names.heap_mapping = made.range.begin;
    return heap_names + (made.range.begin >> name_shift) - (names.heap_mapping >> name_shift);
  }
  const std::uint64_t units = made.page_bytes >> name_shift;
  const std::uint64_t apart = made.pages < pages_apart ? units : pages_apart * units;
  const std::uint64_t first = (names.next + apart - 1) / apart * apart;
  names.next = first + made.pages * units;
  return first;
}

void Registrations::found(std::uint32_t mapping, std::uint64_t begin, std::uint64_t place) {
  named_ = {};
  if (mapping == none || costs_->names_pages == 0) return;
  const Mapping& used = at(mapping);
  const std::uint64_t first = begin - (place - used.range.begin);
  named_ = {.range = {first, first + (used.range.end - used.range.begin)},
            .page = used.name,
            .shift = static_cast<std::uint8_t>(std::bit_width(used.page_bytes) - 1)};
}

std::uint64_t Registrations::pages_of(std::uint64_t begin) const {
  if (begin < named_.range.begin || begin >= named_.range.end) return 0;
  const wire::BufferPages pages{.page = named_.page + ((begin - named_.range.begin) >> name_shift),
                                .shift = named_.shift,
                                .kept = settings_->keeps_translations,
                                .by_processor = covers_all_};
  return pages.word();
}

std::uint64_t Registrations::hold(std::uint64_t begin, std::uint64_t length, wire::RegistrationCounts& counts,
                                  std::uint32_t& mapping) {
  ++counts.regions;
  mapping = none;
  recent_ = {};
  if (covers_all_) return name_only(begin, length);
  const MemoryRange bytes = range_of(begin, length);
  std::uint64_t ps = 0;
  if (has_no_cache()) {
    ++counts.uncached;
    ps = map(bytes, length, counts, mapping);
  } else {
    ps = map_cached(bytes, counts, mapping);
  }
  found(mapping, begin, bytes.begin);
  if (mapping == none) return ps;
  if (at(mapping).is_cached && at(mapping).holders == 0) take_out(mapping);
  ++at(mapping).holders;
  return ps;
}

std::uint64_t Registrations::release(std::uint32_t mapping, wire::RegistrationCounts& counts) {
  if (mapping == none || --at(mapping).holders != 0) return 0;
  recent_ = {};
  if (!at(mapping).is_cached) return unmap(mapping, counts);
  add_newest(mapping);
  return 0;
}

// As ofi_mr_cache_find and ofi_mr_cache_search: a range within a mapped one is there. Room is made only then, smaller
// ranges within the new one give way, and a new one that turns out to be within another, or around it, once its pages
// are whole, has been mapped in vain.
std::uint64_t Registrations::map_cached(MemoryRange bytes, wire::RegistrationCounts& counts, std::uint32_t& mapping) {
  if (memory_has_gone()) tell_what_has_gone();
  std::uint64_t ps = end_dead(counts);
  mapping = find(bytes);
  if (mapping != none) {
    ++counts.hits;
    return ps;
  }
  ++counts.misses;
  const std::uint64_t length = bytes.end - bytes.begin;
  ps += make_room(counts);
  forget_within(bytes);
  for (;;) {
    ps += end_dead(counts) + map(bytes, length, counts, mapping);
    if (mapping == none) return ps;
    const MemoryRange whole = at(mapping).range;
    const std::uint32_t around = find(whole);
    const std::uint32_t behind = first_from(whole.begin);
    const bool is_around = behind < cached_ && whole.holds(order_[behind].range);
    if (around == none && !is_around) break;
    ps += unmap(mapping, counts);
    mapping = around;
    if (around != none) return ps;
    forget_within(whole);
    bytes = whole;
  }
  if (!is_full()) keep(mapping);
  return ps;
}

// A buffer of `length` bytes is charged for the pages that so many bytes fill: where in a page it begins may differ
// from run to run, so that one more or less would too.
std::uint64_t Registrations::map(MemoryRange bytes, std::uint64_t length, wire::RegistrationCounts& counts,
                                 std::uint32_t& mapping) {
  mapping = take_free();
  if (mapping == none) return 0;
  Mapping& made = at(mapping);
  made = {};
  const HugePages huge = huge_pages_at(bytes.begin);
  made.page_bytes = std::max(huge.page_bytes, costs_->page_bytes);
  made.range = whole_pages(bytes, huge.is_aligned ? huge.page_bytes : own_page);
  made.pages = std::max<std::uint64_t>((length + made.page_bytes - 1) / made.page_bytes, 1);
  made.name = name_for(made, huge.page_bytes != 0 && !huge.is_aligned);
  ++counts.mapped;
  counts.mapped_pages += made.pages;
  counts.mapped_bytes += made.pages * made.page_bytes;
  const bool kernel_watches =
      settings_->monitor == MemoryMonitor::kdreg2 || settings_->monitor == MemoryMonitor::userfaultfd;
  const std::uint64_t watched_ps = kernel_watches && !has_no_cache() ? costs_->watch_ps : 0;
  if (!paged_) return costs_->map_ps + made.pages * costs_->map_page_ps + watched_ps;
  const std::uint64_t faults = std::max<std::uint64_t>((length + fault_bytes - 1) / fault_bytes, 1);
  counts.faults += faults;
  return costs_->map_ps + faults * costs_->fault_ps + watched_ps;
}

std::uint64_t Registrations::unmap(std::uint32_t mapping, wire::RegistrationCounts& counts) {
  if (mapping == none) return 0;
  Mapping& ended = at(mapping);
  ++counts.unmapped;
  const std::uint64_t ps = costs_->unmap_ps + (paged_ ? 0 : ended.pages * costs_->unmap_page_ps);
  ended.older = free_;
  free_ = mapping;
  return ps;
}

std::uint64_t Registrations::make_room(wire::RegistrationCounts& counts) {
  std::uint64_t ps = 0;
  while (is_full() && oldest_ != none) {
    const std::uint32_t mapping = oldest_;
    ++counts.evicted;
    forget(first_from(at(mapping).range.begin));
    ps += end_dead(counts);
  }
  return ps;
}

std::uint64_t Registrations::end_dead(wire::RegistrationCounts& counts) {
  std::uint64_t ps = 0;
  counts.invalidated += invalidated_;
  invalidated_ = 0;
  while (dead_ != none) {
    const std::uint32_t mapping = dead_;
    dead_ = at(mapping).older;
    ps += unmap(mapping, counts);
  }
  return ps;
}

void Registrations::forget(std::uint32_t place) {
  recent_ = {};
  const std::uint32_t mapping = order_[place].mapping;
  Mapping& gone = at(mapping);
  memmove(order_ + place, order_ + place + 1, (cached_ - place - 1) * sizeof *order_);
  --cached_;
  cached_bytes_ -= gone.range.end - gone.range.begin;
  gone.is_cached = false;
  if (gone.holders != 0) return;
  take_out(mapping);
  gone.older = dead_;
  dead_ = mapping;
}

void Registrations::forget_within(MemoryRange bytes) {
  const std::uint32_t place = first_from(bytes.begin);
  while (place < cached_ && bytes.holds(order_[place].range)) {
    forget(place);
    ++invalidated_;
  }
}

void Registrations::memory_gone(MemoryRange bytes) {
  std::uint32_t place = first_from(bytes.begin);
  while (place > 0 && order_[place - 1].range.end > bytes.begin) --place;
  while (place < cached_ && order_[place].range.begin < bytes.end) {
    forget(place);
    ++invalidated_;
  }
}

// The first place whose range begins there or behind.
std::uint32_t Registrations::first_from(std::uint64_t begin) const {
  const Place* found = std::lower_bound(order_, order_ + cached_, begin,
                                        [](const Place& place, std::uint64_t at) { return place.range.begin < at; });
  return static_cast<std::uint32_t>(found - order_);
}

std::uint32_t Registrations::find(MemoryRange bytes) {
  std::uint32_t place = first_from(bytes.begin);
  if (place == cached_ || order_[place].range.begin != bytes.begin) {
    if (place == 0) return none;
    --place;
  }
  if (!order_[place].range.holds(bytes)) return none;
  const std::uint32_t mapping = order_[place].mapping;
  if (at(mapping).holders == 0 && mapping != newest_) {
    take_out(mapping);
    add_newest(mapping);
  }
  return mapping;
}

void Registrations::keep(std::uint32_t mapping) {
  if (!grow(order_, order_room_, cached_)) return;
  Mapping& kept = at(mapping);
  const std::uint32_t place = first_from(kept.range.begin);
  memmove(order_ + place + 1, order_ + place, (cached_ - place) * sizeof *order_);
  order_[place] = {kept.range, mapping};
  ++cached_;
  cached_bytes_ += kept.range.end - kept.range.begin;
  kept.is_cached = true;
  add_newest(mapping);
}

std::uint32_t Registrations::take_free() {
  if (free_ != none) {
    const std::uint32_t mapping = free_;
    free_ = at(mapping).older;
    return mapping;
  }
  if (!grow(mappings_, mappings_room_, mappings_used_)) return none;
  return ++mappings_used_;
}

void Registrations::add_newest(std::uint32_t mapping) {
  Mapping& added = at(mapping);
  added.older = newest_;
  added.newer = none;
  (newest_ != none ? at(newest_).newer : oldest_) = mapping;
  newest_ = mapping;
}

void Registrations::take_out(std::uint32_t mapping) {
  const Mapping& taken = at(mapping);
  (taken.older != none ? at(taken.older).newer : oldest_) = taken.newer;
  (taken.newer != none ? at(taken.newer).older : newest_) = taken.older;
}

namespace {

// What the start and the end of MPI register is counted nowhere.
wire::RegistrationCounts& counts_of(const Session& session) {
  static wire::RegistrationCounts untimed;
  wire::RegistrationCounts* counts = session.channel().registered();
  return counts != nullptr ? *counts : untimed;
}

void charge(const Session& session, std::uint64_t ps) {
  if (ps == 0) return;
  counts_of(session).ps += ps;
  session.channel().charge(ps);
}

}  // namespace

void register_other_buffer(const Session& session, Domain& domain, const void* buffer, std::size_t length) {
  const auto begin = reinterpret_cast<std::uint64_t>(buffer);
  charge(session, domain.registrations.use(begin, length, counts_of(session)));
}

std::uint32_t register_region(const Session& session, Domain& domain, const void* buffer, std::size_t length,
                              std::uint64_t& pages) {
  std::uint32_t mapping = 0;
  reach(session, domain, buffer, length);
  if (length == 0 || !domain.registers) return mapping;
  const auto begin = reinterpret_cast<std::uint64_t>(buffer);
  charge(session, domain.registrations.hold(begin, length, counts_of(session), mapping));
  pages = domain.registrations.pages_of(begin);
  return mapping;
}

void release_region(const Session& session, Domain& domain, std::uint32_t mapping) {
  if (!domain.registers) return;
  charge(session, domain.registrations.release(mapping, counts_of(session)));
}

void charge_link(const Session& session, Domain& domain) {
  if (domain.registers) charge(session, domain.registrations.link_ps());
}

}  // namespace dryfly::provider
