// The matching lists of one end-point: posted receives (the priority list of the hardware) and unexpected messages
// (overflow and request list). Decides who takes what, exactly as libfabric states it for an ordered end-point: a
// message goes to the receive posted first among those that accept it, a receive takes the message that arrived
// first among those it accepts. Each member takes one list entry (docs/model/matching.md#list-entries).
//
// The hardware searches lists; here each kind of pattern (tagged?, any source?, ignored tag bits) has a hash index,
// because 20,000 unexpected messages must not cost 20,000 squared. What is left out: the time a long search takes
// in the hardware. What the entries are taken from: portal.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nic/keyed_fifos.hpp"
#include "core/unit/pool.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

inline constexpr std::uint32_t no_match = KeyedFifos::none;

// What a message shows to the matching unit.
struct Label {
  bool tagged = false;
  EndpointId source;
  std::uint64_t tag = 0;
};

// What a receive accepts. Untagged patterns accept untagged messages only and ignore the tag altogether.
struct Pattern {
  bool tagged = false;
  bool any_source = true;
  EndpointId source;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;

  bool accepts(const Label& label) const;
};

// Patterns of one shape share a hash index: the key of a label is what such a pattern looks at.
struct PatternShape {
  bool tagged = false;
  bool any_source = true;
  std::uint64_t ignore = 0;
  bool operator==(const PatternShape&) const = default;

  static PatternShape of(const Pattern& pattern);
  KeyedFifos::Key key(const Label& label) const;
  KeyedFifos::Key key(const Pattern& pattern) const;
};

// Both lists hold the caller's 32-bit values and name their members by slot.
class PostedReceives {
 public:
  std::uint32_t post(const Pattern& pattern, std::uint32_t value);
  // The slot of the receive posted first that accepts this, or no_match.
  std::uint32_t oldest_for(const Label& label) const;
  // oldest_for() will be asked soon.
  void soon(const Label& label) const {
    for (const Index& index : indexes_) index.fifos.soon(index.shape.key(label));
  }
  std::uint32_t value(std::uint32_t slot) const { return entries_[slot].value; }
  void remove(std::uint32_t slot);
  std::size_t size() const { return entries_.in_use(); }
  // Every slot in use, in no promised order but the same in every run.
  std::vector<std::uint32_t> slots() const;

  // The slot posted first whose value satisfies the predicate, or no_match. Linear: for cancel.
  template <class Predicate>
  std::uint32_t find(Predicate wanted) const {
    std::uint32_t found = no_match;
    for (std::uint32_t slot = 0; slot < highest_; ++slot) {
      if (entries_[slot].posted && wanted(entries_[slot].value) &&
          (found == no_match || entries_[slot].sequence < entries_[found].sequence)) {
        found = slot;
      }
    }
    return found;
  }

 private:
  struct Entry {
    std::uint64_t sequence = 0;
    std::uint32_t value = 0;
    std::uint32_t index = 0;
    bool posted = false;
  };
  struct Index {
    PatternShape shape;
    std::uint32_t count = 0;
    KeyedFifos fifos;
  };

  Pool<Entry> entries_;
  std::uint32_t highest_ = 0;  // slots ever used
  std::vector<Index> indexes_;
  std::uint64_t next_sequence_ = 0;
};

class UnexpectedMessages {
 public:
  std::uint32_t add(const Label& label, std::uint32_t value);
  // The slot of the message that arrived first and is accepted, or no_match. May build an index.
  std::uint32_t oldest_for(const Pattern& pattern);
  // The slot that arrived first of all, or no_match.
  std::uint32_t oldest() const { return first_; }
  // The one that arrived after it, or no_match.
  std::uint32_t next(std::uint32_t slot) const { return entries_[slot].next; }
  std::uint32_t value(std::uint32_t slot) const { return entries_[slot].value; }
  void remove(std::uint32_t slot);
  std::size_t size() const { return entries_.in_use(); }

  // A short list is searched by walking it; so is a long one for the ninth shape of pattern and later ones, because
  // each index costs something with every message.
  static constexpr std::size_t walk_limit = 16;
  static constexpr std::size_t index_limit = 8;

 private:
  struct Entry {
    Label label;
    std::uint32_t value = 0;
    std::uint32_t previous = no_match;
    std::uint32_t next = no_match;
  };
  struct Index {
    PatternShape shape;
    KeyedFifos fifos;
  };

  std::uint32_t walk(const Pattern& pattern) const;

  Pool<Entry> entries_;
  std::uint32_t first_ = no_match;  // in the order of arrival
  std::uint32_t last_ = no_match;
  std::vector<Index> indexes_;
};

}  // namespace dryfly::nic
