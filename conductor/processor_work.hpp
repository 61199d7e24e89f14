// Work that NICs ask of the ranks' CPUs, of their providers, and that these have done. The NIC takes an item that is
// done for one of its own, so it has to be one that it has asked for.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "conductor/event_writer.hpp"
#include "conductor/open_command.hpp"
#include "conductor/rank.hpp"
#include "core/nic/nic.hpp"

namespace dryfly {

class ProcessorWork {
 public:
  ProcessorWork(Nics& nics, const std::vector<Rank>& ranks, EventWriter& events)
      : nics_(nics), ranks_(ranks), events_(events) {}

  void ask(EndpointId at, const Work& work);
  // False: nobody has asked for that.
  bool done(const OpenCommand& open);
  // The process that was this rank has ended: it answers nothing any more.
  void forget(RankId rank);

 private:
  struct Asked {
    std::uint32_t endpoint;
    std::uint64_t kind, item, life, count;
    auto operator<=>(const Asked&) const = default;
  };

  Nics& nics_;
  const std::vector<Rank>& ranks_;
  EventWriter& events_;
  std::multiset<Asked> asked_;  // and not yet answered
};

}  // namespace dryfly
