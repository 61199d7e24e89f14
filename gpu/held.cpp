#include "gpu/held.hpp"

#include <stdlib.h>
#include <string.h>

#include "gpu/times.hpp"

namespace dryfly::gpu {

namespace {

// Their types say how long they are; the pointer may be aligned to four bytes only.
std::uint64_t read_word(std::uint64_t address, std::uint32_t bytes) {
  std::uint64_t value = 0;
  memcpy(&value, reinterpret_cast<const void*>(address), bytes);
  return value;
}

}  // namespace

bool is_met(const Condition& condition, std::uint64_t word) {
  const bool is_short = condition.bytes == sizeof(std::uint32_t);
  const std::uint64_t all = is_short ? 0xffffffffU : ~std::uint64_t{0};
  const std::uint64_t seen = word & condition.mask & all;
  const std::uint64_t value = condition.value & condition.mask & all;
  switch (condition.comparison) {
    case Comparison::reached:
      return (((seen - value) & all) >> (is_short ? 31 : 63)) == 0;
    case Comparison::at_least:
      return seen >= value;
    case Comparison::equal:
      return seen == value;
    case Comparison::common_bit:
      return (seen & value) != 0;
    case Comparison::missing_bit:
      return (~(seen | value) & condition.mask & all) != 0;
  }
  return false;
}

bool Waits::put(Stream& stream, const Held& held, std::uint64_t& end_ps) {
  const bool goes_on = held_ == 0 || !holds(stream);
  if (goes_on && (held.step != Step::wait || is_ready(stream, held)) && held.awaited == 0) {
    end_ps = do_now(stream, held);
    return end_ps != no_instant;
  }
  auto* const kept = static_cast<Held*>(malloc(sizeof held));
  if (kept == nullptr) return false;
  *kept = held;
  kept->next = nullptr;
  kept->ticket = ++tickets_;
  (stream.first != nullptr ? stream.last->next : stream.first) = kept;
  stream.last = kept;
  ++held_;
  if (held.step == Step::record) held.event->ticket = kept->ticket;
  end_ps = no_instant;
  return true;
}

bool Waits::holds(const Stream& stream) const {
  if (held_ == 0) return false;
  if (stream.first != nullptr) return true;
  if (!stream.blocking) return false;
  const Stream& standard = timeline_->standard(stream.device);
  if (&stream != &standard) return standard.first != nullptr;
  bool any = false;
  timeline_->each(
      [&](Stream& other) { any |= other.first != nullptr && other.blocking && other.device == stream.device; });
  return any;
}

bool Waits::holds_of(int device) const {
  bool any = false;
  if (held_ != 0) timeline_->each([&](Stream& stream) { any |= stream.first != nullptr && stream.device == device; });
  return any;
}

// What was put into the default stream before it comes first, and what was into its device's others before what is put
// into that.
bool Waits::is_ready(const Stream& stream, const Held& held) const {
  const Stream& standard = timeline_->standard(stream.device);
  const std::uint64_t ticket = held.ticket == 0 ? no_instant : held.ticket;
  bool is_first = true;
  if (&stream == &standard) {
    timeline_->each([&](Stream& other) {
      if (&other != &stream && other.blocking && other.device == stream.device && other.first != nullptr)
        is_first &= other.first->ticket > ticket;
    });
  } else if (stream.blocking && standard.first != nullptr) {
    is_first = standard.first->ticket > ticket;
  }
  if (!is_first) return false;
  if (held.step == Step::follow) return held.awaited == 0;
  if (held.step != Step::wait) return true;
  const Word* const word = find(held.condition.address);
  return word != nullptr && word->known && is_met(held.condition, word->value);
}

std::uint64_t Waits::do_now(Stream& stream, const Held& held) {
  switch (held.step) {
    case Step::work: {
      Work work = held.work;
      work.at_ps = timeline_->put(stream, held.way, held.device, held.begin_ps, held.ps, held.bytes);
      return pending_->add(work) ? work.at_ps : no_instant;
    }
    case Step::record: {
      const std::uint64_t at_ps = timeline_->put(stream, held.way, held.device, held.begin_ps, held.ps);
      if (held.event->ticket == held.ticket || held.ticket == 0) {
        held.event->at_ps = at_ps;
        held.event->ticket = 0;
      }
      if (held.ticket != 0) resolve(held.ticket, at_ps);
      return at_ps;
    }
    case Step::follow:
      stream.end_ps = later(stream.end_ps, held.begin_ps);
      return stream.end_ps;
    case Step::wait: {
      const Word* const word = find(held.condition.address);
      const std::uint64_t since_ps = word != nullptr && word->known ? word->since_ps : 0;
      // It looks when it is at it, and as long as the word has another value.
      timeline_->put(stream, Way::host, held.device, held.begin_ps, held.ps);
      return timeline_->put(stream, Way::host, held.device, since_ps, 0);
    }
  }
  return no_instant;
}

// Those that follow an event know now when it comes to pass.
void Waits::resolve(std::uint64_t ticket, std::uint64_t at_ps) {
  timeline_->each([&](Stream& stream) {
    for (Held* held = stream.first; held != nullptr; held = held->next) {
      if (held->step != Step::follow || held->awaited != ticket) continue;
      held->awaited = 0;
      held->begin_ps = at_ps;
    }
  });
}

bool Waits::go_on(Stream& stream) {
  bool any = false;
  while (stream.first != nullptr && is_ready(stream, *stream.first)) {
    Held* const held = stream.first;
    do_now(stream, *held);
    stream.first = held->next;
    free(held);
    --held_;
    any = true;
  }
  if (any && stream.first == nullptr) timeline_->drained(stream);
  return any;
}

void Waits::go_on() {
  for (bool any = held_ != 0; any;) {
    any = false;
    timeline_->each([&](Stream& stream) { any |= go_on(stream); });
  }
}

Waits::Word* Waits::find(std::uint64_t address) const {
  for (std::size_t i = 0; i < word_count_; ++i) {
    if (words_[i].address == address) return &words_[i];
  }
  return nullptr;
}

bool Waits::is_awaited(std::uint64_t address) const {
  bool any = false;
  timeline_->each([&](Stream& stream) {
    for (const Held* held = stream.first; held != nullptr; held = held->next) {
      any |= held->step == Step::wait && held->condition.address == address;
    }
  });
  return any;
}

bool Waits::is_to_be_watched(std::uint64_t address, std::uint32_t bytes) const {
  const Word* const word = find(address);
  return word == nullptr || word->bytes < bytes || !is_awaited(address);
}

bool Waits::watch(std::uint64_t address, std::uint32_t bytes) {
  Word* word = find(address);
  if (word == nullptr) {
    if (word_count_ == word_room_) {
      const std::size_t room = word_room_ == 0 ? 16 : 2 * word_room_;
      auto* const more = static_cast<Word*>(realloc(words_, room * sizeof *words_));
      if (more == nullptr) return false;
      words_ = more;
      word_room_ = room;
    }
    word = &words_[word_count_++];
    *word = {.address = address,
             .value = 0,
             .remembered = 0,
             .since_ps = 0,
             .bytes = bytes,
             .known = false,
             .is_remembered = false};
  }
  if (bytes > word->bytes) word->bytes = bytes;
  word->known = false;
  return true;
}

void Waits::written(std::uint64_t address, std::uint64_t value, std::uint32_t bytes, std::uint64_t at_ps) {
  Word* const word = find(address);
  if (word == nullptr) return;
  if (bytes < word->bytes) value = (word->value & ~std::uint64_t{0xffffffffU}) | value;
  // A stream that comes to its wait later finds what is there all along.
  if (!word->known || value != word->value) word->since_ps = at_ps;
  word->value = value;
  word->known = true;
  go_on();
}

void Waits::remember() {
  for (std::size_t i = 0; i < word_count_; ++i) {
    // Of others the memory may be gone; who waits for them again asks what is there.
    words_[i].is_remembered = is_awaited(words_[i].address);
    if (words_[i].is_remembered) words_[i].remembered = read_word(words_[i].address, words_[i].bytes);
  }
}

void Waits::look(std::uint64_t address, std::uint64_t bytes, std::uint64_t at_ps) {
  for (std::size_t i = 0; i < word_count_; ++i) {
    const Word& word = words_[i];
    if (bytes != 0 && (address >= word.address + word.bytes || word.address >= address + bytes)) continue;
    if (bytes == 0 && !word.is_remembered) continue;
    const std::uint64_t value = read_word(word.address, word.bytes);
    if (bytes != 0 || value != word.remembered) written(word.address, value, word.bytes, at_ps);
  }
}

}  // namespace dryfly::gpu
