// Accesses to the memory of another end-point: writes, reads and atomics, executed at the target at their instant
// without its CPU. A read answers with data fetched from the target's memory, a fetching atomic with the value its unit
// has just read. A write or plain atomic is complete at its source when the network has acknowledged it and it has been
// applied; the acknowledgement may be quicker than the ingress stage. With `flush` the target's NIC reads from memory
// before it acknowledges, which pushes what it has written there (on-node there is nothing to push). Models ordered and
// unordered accesses (docs/model/nic-protocols.md#rma-order, docs/model/nic-protocols.md#completion-levels); left out
// are acknowledgements made by the switch (high-rate put) and the limits of the atomic unit.
#pragma once

#include <cstdint>

#include "core/nic/nic.hpp"
#include "core/nic/transport.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::nic {

class RemoteMemory {
 public:
  RemoteMemory(Transport& transport, Host& host, const NicSpec& spec, NicTotals& totals);

  void start(const RmaCommand& command);
  void arrived(Parcel parcel, std::uint32_t switch_hops);
  Landing landing_of(Parcel parcel) const;
  void acknowledged(Parcel parcel);
  void flushed(Parcel parcel);
  void failed(Parcel parcel, bool delivered);

  void restart() { accesses_.restart(); }
  bool at_rest() const { return accesses_.in_use() == 0; }

 private:
  struct Access {
    RmaCommand command;
    bool by_memory = false;
    bool over = false;  // nothing follows but acknowledgements
    std::uint32_t unacknowledged = 0;
    int error = 0;
  };

  Fetched fetched_for(const RmaCommand& command) const;
  bool is_inline(const RmaCommand& command) const;
  void count_command(const RmaCommand& command);
  void count_request(const RmaCommand& command);
  void request_arrived(std::uint32_t access, std::uint32_t switch_hops);
  void respond(std::uint32_t access);
  void response_arrived(std::uint32_t access);
  void complete_if_idle(std::uint32_t access);

  Transport& transport_;
  Host& host_;
  const NicSpec& spec_;
  NicTotals& totals_;
  Pool<Access> accesses_;
};

}  // namespace dryfly::nic
