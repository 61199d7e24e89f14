// Work behind a wait for memory: its instants are not known when it is put into its stream. It goes on, in order, when
// the wait ends, by what NICs and other streams have written there and when.
//
// Models docs/model/gpu.md#stream-triggered-communication. Left out: that memory may have another value again when the
// stream comes to the wait: what was there last counts. Not safe to call by several threads; the runtime has one lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/pending.hpp"
#include "gpu/timeline.hpp"

namespace dryfly::gpu {

// How a word of memory has to compare with a value: no less, as CUDA (their difference is not negative) and as HIP have
// it; equal; with a bit in common; with a bit that neither has.
enum class Comparison : std::uint8_t { reached, at_least, equal, common_bit, missing_bit };

struct Condition {
  std::uint64_t address;
  std::uint64_t value;
  std::uint64_t mask;   // of the word
  std::uint32_t bytes;  // 4 or 8
  Comparison comparison;
};
bool is_met(const Condition& condition, std::uint64_t word);

enum class Step : std::uint8_t { work, record, follow, wait };

// Something that a stream does: a piece of work, which takes an engine and a time (Timeline::put); an event that comes
// to pass; that it follows another stream's event; that it waits.
struct Held {
  Held* next;
  std::uint64_t ticket;  // counts all that were held, ever
  Step step;
  Way way;
  int device;
  std::uint64_t begin_ps;  // no sooner
  std::uint64_t ps;
  std::uint64_t bytes;  // of a copy to or from the host
  Work work;
  Event* event;
  std::uint64_t awaited;  // follow: the ticket of the event's record; 0: it is at begin_ps
  Condition condition;
};

class Waits {
 public:
  void open(Timeline& timeline, Pending& pending) {
    timeline_ = &timeline;
    pending_ = &pending;
  }

  // Does it now, and says when it ends; or holds it, until no_instant. False: there is no memory for it.
  static constexpr std::uint64_t no_instant = ~std::uint64_t{0};
  bool put(Stream& stream, const Held& held, std::uint64_t& end_ps);
  // Whether new work in the stream waits for what is held.
  bool holds(const Stream& stream) const;
  bool holds_any() const { return held_ != 0; }
  bool holds_of(int device) const;

  // Whether the word's value is to be asked for: it is not known, or nobody waits for it now.
  bool is_to_be_watched(std::uint64_t address, std::uint32_t bytes) const;
  // It is asked for. False: there is no memory for it.
  bool watch(std::uint64_t address, std::uint32_t bytes);
  // What is at the address since that instant.
  void written(std::uint64_t address, std::uint64_t value, std::uint32_t bytes, std::uint64_t at_ps);
  // Work of this process may have written there, or anywhere (`bytes` 0), and is over: words that it has changed.
  void look(std::uint64_t address, std::uint64_t bytes, std::uint64_t at_ps);
  // Before such work: what is in memory.
  void remember();

 private:
  struct Word {
    std::uint64_t address;
    std::uint64_t value;
    std::uint64_t remembered;
    std::uint64_t since_ps;
    std::uint32_t bytes;
    bool known;
    bool is_remembered;
  };
  Word* find(std::uint64_t address) const;
  bool is_ready(const Stream& stream, const Held& held) const;
  bool is_awaited(std::uint64_t address) const;
  std::uint64_t do_now(Stream& stream, const Held& held);
  void resolve(std::uint64_t ticket, std::uint64_t at_ps);
  void go_on();
  bool go_on(Stream& stream);

  Timeline* timeline_;
  Pending* pending_;
  std::uint64_t tickets_;
  std::size_t held_;
  Word* words_;
  std::size_t word_count_;
  std::size_t word_room_;
};

}  // namespace dryfly::gpu
