// Many first-in first-out lists found by key: the index behind the matching lists. Members are slots (small
// integers of the caller), each in at most one list. Every operation is O(1) on average, and nothing is allocated
// once the largest population has been seen. There is no iteration: hash order cannot reach a result.
#pragma once

#include <cstdint>
#include <vector>

namespace dryfly::nic {

class KeyedFifos {
 public:
  struct Key {
    std::uint64_t tag = 0;
    std::uint32_t source = 0;
    bool operator==(const Key&) const = default;
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  void push(std::uint32_t slot, const Key& key);
  // The slot pushed first among those with this key, or none.
  std::uint32_t front(const Key& key) const;
  void erase(std::uint32_t slot);
  // front() will be asked soon.
  void soon(const Key& key) const;

 private:
  // The first member of each list stands for the list: it hangs in the chain of its hash bucket.
  struct Node {
    Key key;
    std::uint32_t next = none;
    std::uint32_t previous = none;    // none: first of its list
    std::uint32_t last = none;        // first only
    std::uint32_t chain_next = none;  // first only
  };

  std::uint32_t& bucket_of(const Key& key);
  void chain(std::uint32_t first);
  void replace_in_chain(std::uint32_t first, std::uint32_t replacement);
  void grow();

  std::vector<Node> nodes_;             // by slot
  std::vector<std::uint32_t> buckets_;  // size is a power of two, or zero
  std::uint32_t key_count_ = 0;
};

}  // namespace dryfly::nic
