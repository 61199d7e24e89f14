// A table from 64-bit keys to small values that lie beside them, so that a look-up costs one visit to memory. Open
// addressing with linear probing, at most half full; an erased place is filled from behind. There is no iteration: the
// order of the places can reach no result. A pointer to a value lasts until the next insertion or erasure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/unit/check.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/random.hpp"

namespace dryfly {

template <class Value>
class KeyTable {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  Value* find(std::uint64_t key) {
    if (size_ == 0) return nullptr;
    Cell& cell = cells_[place_of(key)];
    return cell.key == key ? &cell.value : nullptr;
  }

  // The value of the key; a fresh one if there is none.
  Value& operator[](std::uint64_t key) {
    DRYFLY_CHECK(key != vacant);
    if (2 * (size_ + 1) > cells_.size()) grow();
    Cell& cell = cells_[place_of(key)];
    if (cell.key != key) {
      cell = {key, Value{}};
      ++size_;
    }
    return cell.value;
  }

  void erase(const Value& value) {
    const auto* cell = reinterpret_cast<const Cell*>(reinterpret_cast<const char*>(&value) - offsetof(Cell, value));
    std::size_t hole = static_cast<std::size_t>(cell - cells_.data());
    const std::size_t mask = cells_.size() - 1;
    for (std::size_t place = (hole + 1) & mask; cells_[place].key != vacant; place = (place + 1) & mask) {
      // Whoever was pushed to here past the hole, or from it, may fill it; nobody moves before the place that its key
      // asks for.
      const std::size_t wanted = mix(cells_[place].key) & mask;
      if (((place - wanted) & mask) < ((place - hole) & mask)) continue;
      cells_[hole] = std::move(cells_[place]);
      hole = place;
    }
    cells_[hole] = Cell{};
    --size_;
  }

  void clear() {
    if (size_ == 0) return;
    for (Cell& cell : cells_) cell = Cell{};
    size_ = 0;
  }

 private:
  static constexpr std::uint64_t vacant = UINT64_MAX;
  static constexpr std::size_t first_cells = 16;
  struct Cell {
    std::uint64_t key = vacant;
    Value value{};
  };

  // Where the key is, or where it would be put.
  std::size_t place_of(std::uint64_t key) const {
    const std::size_t mask = cells_.size() - 1;
    std::size_t place = mix(key) & mask;
    while (cells_[place].key != key && cells_[place].key != vacant) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    LargeVector<Cell> before(cells_.empty() ? first_cells : 2 * cells_.size());
    before.swap(cells_);
    for (Cell& cell : before) {
      if (cell.key != vacant) cells_[place_of(cell.key)] = std::move(cell);
    }
  }

  LargeVector<Cell> cells_;  // as many as a power of two, or none
  std::size_t size_ = 0;
};

}  // namespace dryfly
