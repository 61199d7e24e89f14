// A pool (pool.hpp) whose records several regions of a network see: each takes and gives back by a handle of its own,
// all by the same numbers, and a record never moves. So the records lie in address space that is reserved once and
// becomes memory when it is first touched; a handle takes from it in batches.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "core/network/fabric/pool.hpp"
#include "core/unit/fetch.hpp"

namespace dryfly::fabric {

template <class Record>
class SharedPool {
  static_assert(std::is_trivially_copyable_v<Record> && std::is_trivially_destructible_v<Record>);

 public:
  class Space {
   public:
    // Halves what it asks for as long as the system refuses.
    Space() {
      void* memory = MAP_FAILED;
      for (; memory == MAP_FAILED && most_ > batch; most_ /= 2) {
        memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory != MAP_FAILED) break;
      }
      DRYFLY_CHECK(memory != MAP_FAILED);
      static_cast<void>(madvise(memory, bytes(), MADV_HUGEPAGE));  // advice only
      records_ = static_cast<Record*>(memory);
    }
    ~Space() { munmap(records_, bytes()); }
    Space(const Space&) = delete;
    Space& operator=(const Space&) = delete;

    Record* records() const { return records_; }
    std::uint32_t take_batch() {
      const std::uint32_t first = next_.fetch_add(batch, std::memory_order_relaxed);
      DRYFLY_CHECK(first <= most_ - batch);
      return first;
    }

   private:
    std::size_t bytes() const { return most_ * sizeof(Record); }
    std::size_t most_ = std::size_t{1} << 27;
    Record* records_ = nullptr;
    std::atomic<std::uint32_t> next_{0};
  };

  explicit SharedPool(std::shared_ptr<Space> space) : space_(std::move(space)), records_(space_->records()) {}

  std::uint32_t take() {
    ++in_use_;
    if (!free_.empty()) {
      const std::uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    if (fresh_ == fresh_end_) fresh_end_ = (fresh_ = space_->take_batch()) + batch;
    return static_cast<std::uint32_t>(::new (&records_[fresh_++]) Record{} - records_);
  }
  void give_back(std::uint32_t index) {
    --in_use_;
    free_.push_back(index);
  }
  Record& operator[](std::uint32_t index) { return records_[index]; }
  const Record& operator[](std::uint32_t index) const { return records_[index]; }
  void prefetch(std::uint32_t index) const { fetch_line(&records_[index]); }
  // Taken less given back by this handle, modulo 2^32: only the sum over all handles counts records.
  std::uint32_t in_use() const { return in_use_; }

 private:
  static constexpr std::uint32_t batch = 512;

  std::shared_ptr<Space> space_;
  Record* records_;
  LargeVector<std::uint32_t> free_;
  std::uint32_t fresh_ = 0;
  std::uint32_t fresh_end_ = 0;
  std::uint32_t in_use_ = 0;
};

}  // namespace dryfly::fabric
