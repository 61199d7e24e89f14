#include "core/nic/keyed_fifos.hpp"

#include "core/unit/check.hpp"
#include "core/unit/fetch.hpp"
#include "core/unit/random.hpp"

namespace dryfly::nic {

namespace {
std::size_t hash(const KeyedFifos::Key& key) { return mix(mix(key.tag) ^ key.source); }
}  // namespace

std::uint32_t& KeyedFifos::bucket_of(const Key& key) { return buckets_[hash(key) & (buckets_.size() - 1)]; }

std::uint32_t KeyedFifos::front(const Key& key) const {
  if (key_count_ == 0) return none;
  std::uint32_t first = buckets_[hash(key) & (buckets_.size() - 1)];
  while (first != none && nodes_[first].key != key) first = nodes_[first].chain_next;
  return first;
}

void KeyedFifos::soon(const Key& key) const {
  if (key_count_ == 0) return;
  const std::uint32_t first = buckets_[hash(key) & (buckets_.size() - 1)];
  if (first != none) fetch_line(&nodes_[first]);
}

void KeyedFifos::push(std::uint32_t slot, const Key& key) {
  if (slot >= nodes_.size()) nodes_.resize(slot + std::size_t{1});
  const std::uint32_t first = front(key);
  nodes_[slot] = Node{.key = key};
  if (first != none) {
    nodes_[slot].previous = nodes_[first].last;
    nodes_[nodes_[first].last].next = slot;
    nodes_[first].last = slot;
    return;
  }
  if (key_count_ == buckets_.size()) grow();
  ++key_count_;
  nodes_[slot].last = slot;
  chain(slot);
}

void KeyedFifos::erase(std::uint32_t slot) {
  Node& node = nodes_[slot];
  if (node.previous != none) {
    nodes_[node.previous].next = node.next;
    if (node.next != none) {
      nodes_[node.next].previous = node.previous;
    } else {
      nodes_[front(node.key)].last = node.previous;
    }
  } else if (node.next != none) {
    nodes_[node.next].previous = none;
    nodes_[node.next].last = node.last;
    nodes_[node.next].chain_next = node.chain_next;
    replace_in_chain(slot, node.next);
  } else {
    replace_in_chain(slot, node.chain_next);
    --key_count_;
  }
}

void KeyedFifos::chain(std::uint32_t first) {
  std::uint32_t& bucket = bucket_of(nodes_[first].key);
  nodes_[first].chain_next = bucket;
  bucket = first;
}

void KeyedFifos::replace_in_chain(std::uint32_t first, std::uint32_t replacement) {
  std::uint32_t* link = &bucket_of(nodes_[first].key);
  while (*link != first) {
    DRYFLY_CHECK(*link != none);
    link = &nodes_[*link].chain_next;
  }
  *link = replacement;
}

void KeyedFifos::grow() {
  std::vector<std::uint32_t> old(buckets_.empty() ? 8 : buckets_.size() * 2, none);
  old.swap(buckets_);
  for (std::uint32_t first : old) {
    while (first != none) {
      const std::uint32_t next = nodes_[first].chain_next;
      chain(first);
      first = next;
    }
  }
}

}  // namespace dryfly::nic
