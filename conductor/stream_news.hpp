// What streams of the ranks' GPUs may wait for: counters that a NIC writes back to memory, and words of memory that
// NICs write (docs/model/gpu.md#stream-triggered-communication). A process hears of each change when it is visible,
// with what is there then, and need not look: its memory may be ahead of its clock.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "conductor/distances.hpp"
#include "conductor/event_writer.hpp"
#include "conductor/payloads.hpp"
#include "core/engine/engine.hpp"

namespace dryfly {

class StreamNews {
 public:
  StreamNews(const Engine& engine, EventOutlet& outlet, Payloads& payloads, const Distances& distances)
      : engine_(engine), outlet_(outlet), payloads_(payloads), distances_(distances) {}

  // The counter is written back to that address from now on; 0: to none.
  void keep_at(RankId rank, std::uint32_t counter, std::uint64_t address);
  // If it has an address.
  void write_back(RankId rank, std::uint32_t counter, std::uint64_t value);
  // Tells of the word now, and of each change of it from now on.
  void watch(RankId rank, std::uint64_t address, std::uint64_t bytes);
  // A NIC has written there.
  void changed(RankId rank, std::uint64_t address, std::uint64_t bytes);
  // Another process is the rank from now on.
  void begin(RankId rank) { states_.erase(rank.value); }

 private:
  struct Word {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  // Of a rank.
  struct State {
    std::unordered_map<std::uint32_t, std::uint64_t> buffers{};  // by counter; looked up only
    std::vector<Word> words{};
  };
  void tell_of(RankId rank, const Word& word);
  void tell(RankId rank, wire::News news);

  const Engine& engine_;
  EventOutlet& outlet_;
  Payloads& payloads_;
  const Distances& distances_;
  std::unordered_map<std::uint32_t, State> states_;  // by rank; looked up only
};

}  // namespace dryfly
