// Memory regions that the ranks have registered, and what accesses do to them: a write, read or atomic takes effect at
// its instant at the target, without the target's process, which hears of it where it has asked for that.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "conductor/event_writer.hpp"
#include "conductor/open_command.hpp"
#include "conductor/payloads.hpp"
#include "conductor/rank.hpp"
#include "conductor/stream_news.hpp"
#include "conductor/triggers.hpp"
#include "core/contract/memory.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

class MemoryRegions {
 public:
  MemoryRegions(const std::vector<Rank>& ranks, Payloads& payloads, EventWriter& events, EventOutlet& outlet,
                Triggers& triggers, StreamNews& news)
      : ranks_(ranks), payloads_(payloads), events_(events), outlet_(outlet), triggers_(triggers), news_(news) {}

  void open(const OpenCommand& open);
  void close(const OpenCommand& open);
  void close_all(EndpointId endpoint) { regions_.erase(endpoint.value); }
  // As RmaCommand::target_gpu; 0 of a region that is not there.
  std::uint8_t gpu_of(std::uint32_t address, std::uint64_t key) const;
  // Of a process's buffer; and of a region from that offset on, none of one that is not there.
  static DmaPages pages_of(RankId rank, std::uint64_t word);
  DmaPages pages_at(std::uint32_t address, std::uint64_t key, std::uint64_t offset) const;
  // 0, or the positive error number that the access ends with.
  int apply(OpenCommand& access);

 private:
  struct Region {
    std::uint64_t base;
    std::uint64_t length;
    bool tells;
    std::uint32_t counter;  // of the accesses to it; 0: none
    std::uint8_t gpu;       // as wire::Command has it
    std::uint64_t pages;
  };

  const Region* find(std::uint32_t address, std::uint64_t key) const;
  int move_bytes(OpenCommand& access, std::uint64_t address);
  void tell(const OpenCommand& access, wire::EventKind kind);

  const std::vector<Rank>& ranks_;
  Payloads& payloads_;
  EventWriter& events_;
  EventOutlet& outlet_;
  Triggers& triggers_;
  StreamNews& news_;
  bool any_of_gpus_ = false;  // ever: most machines have none
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, Region>> regions_;  // by end-point, then by key
};

}  // namespace dryfly
