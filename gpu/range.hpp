// A range of addresses over a file in memory, and what of it is allocated. Pages that nobody has written take no memory
// of this computer. As a driver does, it takes memory in chunks: one has many short allocations, or a part of a longer
// one (docs/model/gpu.md#taking-memory).
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::gpu {

struct Allocation {
  std::uint64_t start;
  std::uint64_t bytes;
  std::uint32_t shown;   // one more than its entry in the owner's table; 0: not shown to other processes
  std::uint32_t opened;  // how often, where it is another's
  std::uint64_t id;      // no two in this process have had the same; 0: of memory that the runtime has not given out
  bool whole;            // taken for all tiles of a GPU, as far as its program knows
  bool synchronous;      // copies and fills of it are over when their calls come back, unless a stream has them
  std::uint8_t pool;     // one more than the number of the pool it is of; 0: of none
  bool leaving;          // given back in a stream: the program has it no more, and nobody else has it yet
};

// What the owner of a range has shown to others, behind its memory in the same file. An entry is 0 or the number of the
// handle that was given out last.
struct Shown {
  static constexpr std::uint32_t most = 4095;
  std::uint64_t range;
  std::uint64_t serials[most];
};

class Range {
 public:
  // False where this computer lacks the memory or the address space, or the range is full.
  bool allocate(std::uint64_t bytes, std::uint64_t& start, std::uint64_t wanted_alignment = 0);
  // Of an allocation: whether no other one is in its chunk, so that a driver takes and gives back the chunk with it.
  bool is_alone(const Allocation& allocation) const;
  static bool is_short(std::uint64_t bytes) { return bytes < chunk_bytes; }
  // Pages of it are given back. Neighbours may share the first and the last.
  bool free(std::uint64_t start);
  const Allocation* at(std::uint64_t address) const;
  Allocation* at(std::uint64_t address) {
    return const_cast<Allocation*>(static_cast<const Range*>(this)->at(address));
  }

  // The addresses are held for it.
  void open(std::uint64_t base, std::uint64_t capacity) {
    base_ = base;
    capacity_ = capacity;
  }
  std::uint64_t base() const { return base_; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_; }
  int file() const { return file_; }

  // The owner's table; null where there is no memory for it.
  Shown* shown();

  // Another process' range: its file is this one's from now on, also where this fails.
  bool adopt(int file, std::uint64_t capacity);
  // An allocation where the owner has it; null where there is no memory for the record.
  Allocation* add(std::uint64_t start, std::uint64_t bytes);
  // The whole range goes with its last allocation.
  void remove(Allocation* allocation);
  bool is_mapped() const { return mapped_; }

 private:
  static constexpr std::uint64_t chunk_bytes = 2 << 20;

  bool map();
  bool map_file();
  bool grow();
  Allocation* insert(std::size_t index, std::uint64_t start, std::uint64_t bytes);
  void erase(std::size_t index);

  std::uint64_t base_;
  std::uint64_t capacity_;
  std::uint64_t used_;
  int file_;
  bool mapped_;
  Shown* shown_;
  Allocation* all_;  // in the order of their addresses
  std::size_t count_;
  std::size_t room_;
};

}  // namespace dryfly::gpu
