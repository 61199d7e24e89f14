// The NIC's address translation unit: where in its host's memory a page is that a payload is read from or written to.
// A NIC keeps what it has looked up last; for anything else it reads the driver's tables, which lie in the host's
// memory, or asks the processor's IOMMU. Models docs/model/registration.md#the-nics-translations.
//
// A line of the cache has the translations of some pages in a row. Each packet of a payload asks for its page. One that
// finds its line has it at once; one that does not waits for a walk of the tables, and so does whoever asks for that
// line meanwhile. A NIC has so many walks at a time and no more. What it reads it asks for ahead, so that a payload
// which leaves is late by its first walk, and by what walks have waited for each other; what comes in asks when it
// comes, so that a payload is late by what its last walks are late.
//
// Left out: which lines a line may displace (the one used longest ago goes), what walks take of PCIe and what ends a
// line before that: its name is not used again.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "core/contract/memory.hpp"
#include "core/contract/network.hpp"
#include "core/nic/counter_bank.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

struct TranslationSpec {
  std::uint64_t lines = 0;        // that a NIC keeps; 0: translations take no time
  std::uint32_t span_shift = 3;   // pages of a line, as a power of two
  std::uint32_t walks = 32;       // at a time
  Duration read{};                // of a table of the driver's, for each level
  Duration ask{};                 // of the processor's IOMMU
  std::uint32_t page_shift = 12;  // of the host's pages: what is longer has a level less
};

namespace nic {

class Translations {
 public:
  Translations(const TranslationSpec& spec, Rate link, Bytes packet, CounterBank& counters)
      : spec_(spec), link_(link), packet_(packet), counters_(counters) {}

  bool modelled() const { return spec_.lines != 0; }
  // A payload there is fetched from now on: by how much it leaves later.
  Duration reading(NicId nic, const DmaPages& pages, Bytes size, Instant now);
  // The last byte of a payload that belongs there is at the NIC now: by how much it is later in memory.
  Duration writing(NicId nic, const DmaPages& pages, Bytes size, Instant now);
  // The same of what arrived at that end-point and was matched now, so that it does not get there before what was
  // matched before it.
  Duration placing(EndpointId at, NicId nic, const DmaPages& pages, Bytes size, Instant now);
  // Nothing is kept, as if it had been idle for long.
  void restart() {
    units_.clear();
    placed_until_.clear();
  }

 private:
  struct Line {
    std::uint64_t name;
    Instant ready;
  };
  // Of a NIC.
  struct Unit {
    std::uint32_t counters = 0;                                           // where those of the NIC are
    std::list<Line> lines;                                                // the one used last first
    std::unordered_map<std::uint64_t, std::list<Line>::iterator> places;  // by name; looked up only
    std::vector<Instant> walks;  // until when each is under way, the oldest at `oldest`
    std::size_t oldest = 0;
  };
  // What asks for a line, or without a cache for itself.
  struct Part {
    std::uint64_t line;
    std::uint64_t offset;   // bytes of the payload before it
    std::uint64_t packets;  // that ask
  };
  enum class Client : std::uint8_t { outgoing, incoming };

  Unit& unit(NicId nic);
  // `ask` for each part, in order, at which it is `wanted`; until when the last of them is there.
  template <class Each>
  void for_each_part(const DmaPages& pages, Bytes size, Each each) const;
  // When it is there that is asked for then.
  Instant look_up(Unit& unit, const DmaPages& pages, const Part& part, Client client, Instant asked);
  Instant walk(Unit& unit, const DmaPages& pages, Instant asked) const;
  Duration walk_time(const DmaPages& pages) const;
  Duration passed(std::uint64_t bytes) const { return transmission_time(Bytes{bytes}, link_); }

  const TranslationSpec& spec_;
  Rate link_;
  Bytes packet_;
  CounterBank& counters_;
  std::vector<Unit> units_;            // by NIC
  std::vector<Instant> placed_until_;  // by end-point
};

}  // namespace nic
}  // namespace dryfly
