// Records with small numbers for names. The number given back last is handed out first: it is the one whose memory
// is still in the cache. Numbers name a record while it lives; no result may depend on which number it has.
#pragma once

#include <cstdint>

#include "core/unit/check.hpp"
#include "core/unit/fetch.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::fabric {

inline constexpr std::uint32_t none = 0xffffffffU;

template <class Record>
class Pool {
 public:
  std::uint32_t take() {
    ++in_use_;
    if (!free_.empty()) {
      const std::uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    DRYFLY_CHECK(records_.size() < none);
    records_.emplace_back();
    return static_cast<std::uint32_t>(records_.size() - 1);
  }
  void give_back(std::uint32_t index) {
    --in_use_;
    free_.push_back(index);
  }
  Record& operator[](std::uint32_t index) { return records_[index]; }
  const Record& operator[](std::uint32_t index) const { return records_[index]; }
  bool has(std::uint32_t index) const { return index < records_.size(); }
  void prefetch(std::uint32_t index) const {
    if (has(index)) fetch_line(&records_[index]);
  }
  std::uint32_t in_use() const { return in_use_; }

 private:
  LargeVector<Record> records_;
  LargeVector<std::uint32_t> free_;
  std::uint32_t in_use_ = 0;
};

}  // namespace dryfly::fabric
