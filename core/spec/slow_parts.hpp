// What of a machine's nodes is slower than it should be, for as long as the machine is looked at: a NIC's way to memory
// (PCIe with fewer lanes or at a lower speed, or the NIC itself), the memory of a node, its cores, the link of a GPU.
// From the spec's slow.*; a machine in order has none.
//
// Models docs/model/reliability.md#parts-of-nodes: all that the part does takes as much longer as its share says.
#pragma once

#include <cstdint>
#include <map>

#include "core/spec/fields.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

struct SlowParts {
  static constexpr std::uint64_t whole_ppb = 1'000'000'000;
  std::map<NicId, std::uint64_t> nics;  // shares of the rate of a link
  std::map<NodeId, std::uint64_t> memories;
  std::map<NodeId, std::uint64_t> cpus;
  std::map<std::uint32_t, std::uint64_t> gpus;  // counted over the machine, as many to each node: shares of their links

  // Throws SpecError. Of two entries for one part the slower counts.
  static SlowParts read(const Spec& spec) {
    SlowParts parts;
    const std::uint64_t count = spec.has(fields::slow_count) ? spec.number(fields::slow_count) : 0;
    for (std::uint64_t n = 0; n < count; ++n) {
      const std::string& kind = spec.text(fields::slow_kind, {n});
      const std::uint32_t number = spec.small(fields::slow_number, {n});
      const std::uint64_t share = spec.number(fields::slow_share_ppb, {n});
      if (kind == "nic") {
        slow(parts.nics, NicId{number}, share);
      } else if (kind == "gpu") {
        slow(parts.gpus, number, share);
      } else {
        slow(kind == "memory" ? parts.memories : parts.cpus, NodeId{number}, share);
      }
    }
    return parts;
  }

  // What is left of a rate.
  static Rate of(Rate rate, std::uint64_t share_ppb) {
    __extension__ using Wide = unsigned __int128;
    return {static_cast<std::uint64_t>(static_cast<Wide>(rate.bytes_per_s) * share_ppb / whole_ppb)};
  }
  template <class Id>
  static std::uint64_t share_of(const std::map<Id, std::uint64_t>& parts, Id id) {
    if (parts.empty()) return whole_ppb;
    const auto found = parts.find(id);
    return found == parts.end() ? whole_ppb : found->second;
  }

 private:
  template <class Id>
  static void slow(std::map<Id, std::uint64_t>& parts, Id id, std::uint64_t share) {
    const auto [found, is_new] = parts.try_emplace(id, share);
    if (!is_new && share < found->second) found->second = share;
  }
};

}  // namespace dryfly
