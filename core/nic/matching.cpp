#include "core/nic/matching.hpp"

#include <algorithm>

namespace dryfly::nic {

bool Pattern::accepts(const Label& label) const {
  const PatternShape shape = PatternShape::of(*this);
  return tagged == label.tagged && shape.key(*this) == shape.key(label);
}

PatternShape PatternShape::of(const Pattern& pattern) {
  return {pattern.tagged, pattern.any_source, pattern.tagged ? pattern.ignore : ~std::uint64_t{0}};
}

KeyedFifos::Key PatternShape::key(const Label& label) const {
  return {label.tag & ~ignore, any_source ? 0 : label.source.value};
}

KeyedFifos::Key PatternShape::key(const Pattern& pattern) const {
  return {pattern.tag & ~ignore, any_source ? 0 : pattern.source.value};
}

std::uint32_t PostedReceives::post(const Pattern& pattern, std::uint32_t value) {
  const PatternShape shape = PatternShape::of(pattern);
  const auto index = std::find_if(indexes_.begin(), indexes_.end(), [&](const Index& i) { return i.shape == shape; });
  const auto index_number = static_cast<std::uint32_t>(index - indexes_.begin());
  if (index == indexes_.end()) indexes_.push_back({.shape = shape});

  const std::uint32_t slot = entries_.acquire();
  highest_ = std::max(highest_, slot + 1);
  entries_[slot] = {.sequence = next_sequence_++, .value = value, .index = index_number, .posted = true};
  indexes_[index_number].fifos.push(slot, shape.key(pattern));
  ++indexes_[index_number].count;
  return slot;
}

std::uint32_t PostedReceives::oldest_for(const Label& label) const {
  std::uint32_t oldest = no_match;
  for (const Index& index : indexes_) {
    if (index.count == 0 || index.shape.tagged != label.tagged) continue;
    const std::uint32_t slot = index.fifos.front(index.shape.key(label));
    if (slot == no_match) continue;
    if (oldest == no_match || entries_[slot].sequence < entries_[oldest].sequence) oldest = slot;
  }
  return oldest;
}

std::vector<std::uint32_t> PostedReceives::slots() const {
  std::vector<std::uint32_t> used;
  used.reserve(size());
  for (std::uint32_t slot = 0; slot < highest_; ++slot) {
    if (entries_[slot].posted) used.push_back(slot);
  }
  return used;
}

void PostedReceives::remove(std::uint32_t slot) {
  Index& index = indexes_[entries_[slot].index];
  index.fifos.erase(slot);
  --index.count;
  entries_[slot].posted = false;
  entries_.release(slot);
}

std::uint32_t UnexpectedMessages::add(const Label& label, std::uint32_t value) {
  const std::uint32_t slot = entries_.acquire();
  entries_[slot] = {.label = label, .value = value, .previous = last_, .next = no_match};
  (last_ == no_match ? first_ : entries_[last_].next) = slot;
  last_ = slot;
  for (Index& index : indexes_) {
    if (index.shape.tagged == label.tagged) index.fifos.push(slot, index.shape.key(label));
  }
  return slot;
}

std::uint32_t UnexpectedMessages::oldest_for(const Pattern& pattern) {
  if (size() <= walk_limit) return walk(pattern);
  const PatternShape shape = PatternShape::of(pattern);
  for (const Index& index : indexes_) {
    if (index.shape == shape) return index.fifos.front(shape.key(pattern));
  }
  if (indexes_.size() == index_limit) return walk(pattern);
  Index& index = indexes_.emplace_back(Index{.shape = shape});
  for (std::uint32_t slot = first_; slot != no_match; slot = entries_[slot].next) {
    const Label& label = entries_[slot].label;
    if (label.tagged == shape.tagged) index.fifos.push(slot, shape.key(label));
  }
  return index.fifos.front(shape.key(pattern));
}

std::uint32_t UnexpectedMessages::walk(const Pattern& pattern) const {
  std::uint32_t slot = first_;
  while (slot != no_match && !pattern.accepts(entries_[slot].label)) slot = entries_[slot].next;
  return slot;
}

void UnexpectedMessages::remove(std::uint32_t slot) {
  const Entry& entry = entries_[slot];
  for (Index& index : indexes_) {
    if (index.shape.tagged == entry.label.tagged) index.fifos.erase(slot);
  }
  (entry.previous == no_match ? first_ : entries_[entry.previous].next) = entry.next;
  (entry.next == no_match ? last_ : entries_[entry.next].previous) = entry.previous;
  entries_.release(slot);
}

}  // namespace dryfly::nic
