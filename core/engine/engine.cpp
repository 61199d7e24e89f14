// A timing wheel in three parts. The near future lies in slots of 2^slot_width_bits picoseconds, unsorted, in
// chunks of one arena that are reused last-in first-out, so that the working set stays in the cache. The slot whose
// turn has come is copied out and sorted once. Two binary heaps take the rest: `early` what is scheduled into the
// slot under way or before it, `far` what lies beyond the wheel; each event passes through `far` at most once.
//
// Invariant: early and the slot under way come before every slot of the wheel, these before everything in `far`.
#include "core/engine/engine.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/unit/large_pages.hpp"

namespace dryfly {
namespace {

constexpr unsigned slot_count_bits = 14;  // 8.4 us of slots of 0.5 ns: every event of a fabric and most of a NIC
constexpr std::uint64_t slot_count = std::uint64_t{1} << slot_count_bits;
constexpr std::uint64_t slot_mask = slot_count - 1;
constexpr unsigned pile_count_bits = 8;  // a slot is dealt into
constexpr std::size_t few = 64;          // to be sorted by insertion
// How many events before an event is handled it is announced, stage by stage.
constexpr std::array<std::size_t, Handler::most_fetch_stages> ahead = {24, 14, 6, 3};
constexpr std::uint32_t no_chunk = 0xffffffffU;

bool operator<(const Event& a, const Event& b) { return a.at_ps != b.at_ps ? a.at_ps < b.at_ps : a.key < b.key; }

struct Later {
  bool operator()(const Event& a, const Event& b) const { return b < a; }
};

class Heap {
 public:
  bool empty() const { return events_.empty(); }
  std::size_t size() const { return events_.size(); }
  const Event& top() const { return events_.front(); }
  void push(Event event) {
    events_.push_back(event);
    std::push_heap(events_.begin(), events_.end(), Later{});
  }
  Event pop() {
    std::pop_heap(events_.begin(), events_.end(), Later{});
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }

 private:
  std::vector<Event> events_;
};

// 256 bytes: fifteen events and the link to the chunk filled before it.
struct Chunk {
  static constexpr std::uint32_t capacity = 15;
  std::uint32_t before = no_chunk;
  std::array<Event, capacity> events;
};

// What a slot of the wheel holds: its last chunk and how much of it is filled; those before it are full. That the
// count lies here lets an event be added without reading the chunk, which is seldom in the cache.
struct Slot {
  std::uint32_t chunk = no_chunk;
  std::uint32_t count = 0;
};

class ChunkArena {
 public:
  Chunk& operator[](std::uint32_t index) { return chunks_[index]; }
  std::uint32_t take(std::uint32_t before) {
    std::uint32_t index = free_;
    if (index == no_chunk) {
      index = static_cast<std::uint32_t>(chunks_.size());
      chunks_.emplace_back();
    } else {
      free_ = chunks_[index].before;
    }
    chunks_[index].before = before;
    return index;
  }
  // Returns the chunk filled before it.
  std::uint32_t give_back(std::uint32_t index) {
    const std::uint32_t before = chunks_[index].before;
    chunks_[index].before = free_;
    free_ = index;
    return before;
  }

 private:
  LargeVector<Chunk> chunks_;
  std::uint32_t free_ = no_chunk;
};

// Which slots hold events: one bit each, and one bit per non-zero word of these, so that a jump over thousands of
// empty slots costs a few instructions.
class Occupancy {
 public:
  void set(std::uint64_t slot) {
    words_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    summary_[slot / 4096] |= std::uint64_t{1} << (slot / 64 % 64);
  }
  void clear(std::uint64_t slot) {
    words_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    if (words_[slot / 64] == 0) summary_[slot / 4096] &= ~(std::uint64_t{1} << (slot / 64 % 64));
  }
  // The first occupied slot at or after `start`, going round; slot_count when there is none.
  std::uint64_t first_from(std::uint64_t start) const {
    const std::uint64_t here = words_[start / 64] >> (start % 64);
    if (here != 0) return start + static_cast<std::uint64_t>(std::countr_zero(here));
    const std::uint64_t word = first_word_from(start / 64 + 1);
    if (word == word_count) return slot_count;
    return word * 64 + static_cast<std::uint64_t>(std::countr_zero(words_[word]));
  }

 private:
  static constexpr std::uint64_t word_count = slot_count / 64;
  static constexpr std::uint64_t summary_count = word_count / 64;

  std::uint64_t first_word_from(std::uint64_t word) const {
    word %= word_count;
    const std::uint64_t high = summary_[word / 64] & (~std::uint64_t{0} << (word % 64));
    if (high != 0) return word / 64 * 64 + static_cast<std::uint64_t>(std::countr_zero(high));
    for (std::uint64_t step = 1; step <= summary_count; ++step) {
      const std::uint64_t index = (word / 64 + step) % summary_count;
      if (summary_[index] != 0) return index * 64 + static_cast<std::uint64_t>(std::countr_zero(summary_[index]));
    }
    return word_count;
  }

  std::array<std::uint64_t, word_count> words_{};
  std::array<std::uint64_t, summary_count> summary_{};
};

}  // namespace

struct Engine::Queue {
  explicit Queue(unsigned bits) : slot_width_bits(bits) {}

  std::uint64_t slot_number(std::uint64_t at_ps) const { return at_ps >> slot_width_bits; }
  std::uint64_t pile(const Event& event) const {
    constexpr std::uint64_t mask = (std::uint64_t{1} << pile_count_bits) - 1;
    return (event.at_ps >> (slot_width_bits - pile_count_bits)) & mask;
  }

  const unsigned slot_width_bits;
  LargeVector<Slot> slots = LargeVector<Slot>(slot_count);
  Occupancy occupancy;
  ChunkArena arena;
  // Sorted up to `end`; those before `cursor` have run.
  LargeVector<Event> under_way = LargeVector<Event>(Chunk::capacity);
  std::size_t cursor = 0;
  std::size_t end = 0;
  std::uint64_t slot_under_way = 0;
  Heap early;
  Heap far;

  void push(Event event) {
    const std::uint64_t slot = slot_number(event.at_ps);
    if (slot <= slot_under_way) {
      early.push(event);
    } else if (slot - slot_under_way < slot_count) {
      push_to_wheel(event, slot & slot_mask);
    } else {
      far.push(event);
    }
  }

  void push_to_wheel(Event event, std::uint64_t place) {
    Slot& slot = slots[place];
    if (slot.chunk == no_chunk) occupancy.set(place);
    if (slot.chunk == no_chunk || slot.count == Chunk::capacity) slot = {arena.take(slot.chunk), 0};
    arena[slot.chunk].events[slot.count++] = event;
  }

  // Calls `look` with each event at that place.
  template <class Look>
  void each(std::uint64_t place, Look look) {
    std::uint32_t count = slots[place].count;
    for (std::uint32_t chunk = slots[place].chunk; chunk != no_chunk; chunk = arena[chunk].before) {
      for (std::uint32_t i = 0; i < count; ++i) look(arena[chunk].events[i]);
      count = Chunk::capacity;
    }
  }

  // The earliest event of the slot under way and before, or null.
  const Event* front() const {
    const bool sorted_left = cursor < end;
    if (early.empty()) return sorted_left ? &under_way[cursor] : nullptr;
    return sorted_left && under_way[cursor] < early.top() ? &under_way[cursor] : &early.top();
  }

  bool early_is_first() const { return !early.empty() && !(cursor < end && under_way[cursor] < early.top()); }

  // The next occupied slot's place in the wheel, or slot_count. The wheel never holds the slot under way itself.
  std::uint64_t next_place() const { return occupancy.first_from((slot_under_way + 1) & slot_mask); }

  std::uint64_t count() {
    std::uint64_t found = end - cursor + early.size() + far.size();
    for (std::uint64_t place = 0; place < slot_count; ++place) {
      if (slots[place].chunk != no_chunk) each(place, [&](const Event&) { ++found; });
    }
    return found;
  }

  std::uint64_t earliest_at(std::uint64_t place) {
    std::uint64_t earliest = never.ps;
    each(place, [&](const Event& event) { earliest = std::min(earliest, event.at_ps); });
    return earliest;
  }

  // What lies beyond front(): the wheel's earliest, or far's.
  std::uint64_t earliest_ahead() {
    const std::uint64_t place = next_place();
    if (place != slot_count) return earliest_at(place);
    return far.empty() ? never.ps : far.top().at_ps;
  }

  // Makes the next slot the one under way, if it holds an event before the limit. A slot is never opened merely to
  // look at it: what is scheduled before the slot under way goes to a heap, which is slower.
  bool advance(std::uint64_t limit_ps) {
    const std::uint64_t place = next_place();
    if (place == slot_count) {
      if (far.empty() || far.top().at_ps >= limit_ps) return false;
      enter(slot_number(far.top().at_ps));
      return true;
    }
    const std::uint64_t slot = slot_under_way + 1 + ((place - slot_under_way - 1) & slot_mask);
    if ((slot + 1) << slot_width_bits > limit_ps && earliest_at(place) >= limit_ps) return false;
    enter(slot);
    return true;
  }

  // Moves what lies at that place to `under_way`, in order. What does not fit one chunk is dealt by its instants
  // first, which leaves little to compare.
  void open(std::uint64_t place) {
    Slot& slot = slots[place];
    if (arena[slot.chunk].before == no_chunk) {
      const Event* const first = arena[slot.chunk].events.data();
      for (end = 0; end < slot.count; ++end) insert(first[end], end);
      slot.chunk = arena.give_back(slot.chunk);
    } else {
      deal(place);
      while (slot.chunk != no_chunk) slot.chunk = arena.give_back(slot.chunk);
      if (end > few) sort_crowded_piles();
      for (std::size_t next = 1; next < end; ++next) insert(under_way[next], next);
    }
    occupancy.clear(place);
  }

  // Among those before `at`, which are in order.
  void insert(const Event event, std::size_t at) {
    for (; at > 0 && event < under_way[at - 1]; --at) under_way[at] = under_way[at - 1];
    under_way[at] = event;
  }

  // Inserting one by one is quick where a pile has few. Ranks of a skeleton in step put thousands at one instant.
  void sort_crowded_piles() {
    for (std::size_t from = 0; from < end;) {
      std::size_t until = from + 1;
      while (until < end && pile(under_way[until]) == pile(under_way[from])) ++until;
      const auto first = under_way.begin() + static_cast<std::ptrdiff_t>(from);
      if (until - from > few)
        std::sort(first, first + static_cast<std::ptrdiff_t>(until - from),
                  [](const Event& a, const Event& b) { return a < b; });
      from = until;
    }
  }

  void deal(std::uint64_t place) {
    std::array<std::uint32_t, std::size_t{1} << pile_count_bits> next{};
    each(place, [&](const Event& event) { ++next[pile(event)]; });
    std::uint32_t count = 0;
    for (std::uint32_t& first : next) first = std::exchange(count, count + first);
    end = count;
    if (under_way.size() < end) under_way.resize(end);
    each(place, [&](const Event& event) { under_way[next[pile(event)]++] = event; });
  }

  void enter(std::uint64_t slot) {
    cursor = 0;
    end = 0;
    slot_under_way = slot;
    const std::uint64_t place = slot & slot_mask;
    if (slots[place].chunk != no_chunk) open(place);
    while (!far.empty() && slot_number(far.top().at_ps) - slot < slot_count) push(far.pop());
  }
};

Engine::Engine(unsigned slot_width_bits) : queue_(std::make_unique<Queue>(slot_width_bits)) {
  DRYFLY_CHECK(slot_width_bits >= pile_count_bits && slot_width_bits < 32);
}

Engine::~Engine() = default;

void Engine::attach(ComponentClass component_class, Handler& handler, unsigned fetch_stages) {
  const auto at = static_cast<std::size_t>(component_class);
  DRYFLY_CHECK(handlers_[at] == nullptr);
  handlers_[at] = &handler;
  fetch_stages_[at] = static_cast<std::uint8_t>(fetch_stages);
  most_fetch_stages_ = std::max(most_fetch_stages_, fetch_stages);
}

ComponentClass Engine::attach_host(Handler& handler) {
  constexpr auto first = static_cast<std::size_t>(ComponentClass::host);
  auto at = handlers_[first] == nullptr ? first : static_cast<std::size_t>(ComponentClass::further_hosts);
  while (at < handlers_.size() && handlers_[at] != nullptr) ++at;
  DRYFLY_CHECK(at < handlers_.size());
  handlers_[at] = &handler;
  return static_cast<ComponentClass>(at);
}

void Engine::schedule(Instant at, std::uint64_t key) {
  DRYFLY_CHECK(at >= now_ && at != never);
  queue_->push({at.ps, key});
}

void Engine::run(Instant limit) {
  Queue& queue = *queue_;
  limit_ = limit;
  for (;;) {
    const Event* front = queue.front();
    if (front == nullptr) {
      if (!queue.advance(limit_.ps)) return;
      continue;
    }
    if (front->at_ps >= limit_.ps) return;
    const bool early = queue.early_is_first();
    const Event event = early ? queue.early.pop() : queue.under_way[queue.cursor++];
    if (!early && queue.cursor < queue.end) fetch_ahead();
    now_ = Instant{event.at_ps};
    ++events_run_;
    Handler* handler = handlers_[event.key >> component_class_shift];
    DRYFLY_CHECK(handler != nullptr);
    handler->handle(event);
  }
}

void Engine::fetch_ahead() const {
  const LargeVector<Event>& events = queue_->under_way;
  const std::size_t end = queue_->end;
  const std::size_t next = queue_->cursor;
  const auto prefetch = [&](std::size_t place, unsigned stage) {
    const Event& event = events[place];
    const std::uint64_t component_class = event.key >> component_class_shift;
    if (stage < fetch_stages_[component_class]) handlers_[component_class]->prefetch(event, stage);
  };
  for (unsigned stage = 0; stage < most_fetch_stages_; ++stage) {
    const std::size_t place = next + ahead[stage] - 1;
    if (next == 1) {
      for (std::size_t first = 1; first < std::min(end, place); ++first) prefetch(first, stage);
    }
    if (place < end) prefetch(place, stage);
  }
}

std::uint64_t Engine::events_pending() const { return queue_->count(); }

void Engine::lower_limit(Instant limit) { limit_ = std::min(limit_, limit); }

Instant Engine::next() {
  const Event* front = queue_->front();
  return Instant{front != nullptr ? front->at_ps : queue_->earliest_ahead()};
}

}  // namespace dryfly
