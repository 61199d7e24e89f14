// Who wrote what lies in memory that the ranks of a node share, and who read it last, page by page.
//
// Models docs/model/on-node.md#places: what a core copies comes from the cores that have it. A copy into shared memory
// makes its pages the writer's; whoever copies out of them has them too, and the next who writes there gets them back
// from there. Kept for as many pages as there is room for; of further ones nobody knows.
//
// `Place` is any small value whose zero stands for nobody. All zeros is empty, so that it may lie in memory that ranks
// share. Whoever uses it goes in turn.
#pragma once

#include <array>
#include <cstdint>

namespace dryfly {

template <class Place>
class WrittenPages {
 public:
  static constexpr std::uint64_t page_bytes = 4096;
  static constexpr std::uint64_t capacity = std::uint64_t{1} << 16;
  struct Page {
    std::uint64_t name;  // not zero
    Place writer;
    Place reader;
  };

  // `file`: names what the memory is a mapping of; `offset`: into that.
  static std::uint64_t name_of(std::uint64_t file, std::uint64_t offset) {
    return mixed(file ^ mixed(offset / page_bytes + 1)) | 1;
  }

  // Null: it has not been written, or there is no room to remember that.
  Page* find(std::uint64_t name) {
    for (std::uint64_t at = name % capacity;; at = (at + 1) % capacity) {
      if (pages_[at].name == name) return &pages_[at];
      if (pages_[at].name == 0) return nullptr;
    }
  }
  void written(std::uint64_t name, const Place& by) {
    Page* page = find(name);
    if (page == nullptr) page = add(name);
    if (page == nullptr) return;
    page->writer = by;
    page->reader = {};
  }
  void read(std::uint64_t name, const Place& by) {
    if (Page* page = find(name); page != nullptr) page->reader = by;
  }

 private:
  // Whether there is room depends on how many there are alone, and not on their names, which differ from run to run.
  Page* add(std::uint64_t name) {
    if (count_ == capacity / 4 * 3) return nullptr;
    ++count_;
    std::uint64_t at = name % capacity;
    while (pages_[at].name != 0) at = (at + 1) % capacity;
    pages_[at].name = name;
    return &pages_[at];
  }
  // SplitMix64.
  static constexpr std::uint64_t mixed(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
  }

  std::uint64_t count_;
  std::array<Page, capacity> pages_;
};

}  // namespace dryfly
