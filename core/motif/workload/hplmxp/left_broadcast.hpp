// The broadcast of a step's L along a process row, which goes on while the rank multiplies: MPI_Ibcast as MPICH runs it
// (docs/model/hplmxp.md#messages-of-the-program), in rounds. Few ranks or bytes go down a binomial tree; more are
// scattered along it, then gathered by doubling or around a ring.
//
// Left out: several ranks of a row on a node, which MPICH serves by a rank of each node.
#pragma once

#include <cstdint>

#include "core/motif/collective/communicator.hpp"
#include "core/motif/flight/traffic.hpp"

namespace dryfly::motif::hplmxp {

class LeftBroadcast final : public flight::Rounds {
 public:
  LeftBroadcast() = default;
  // `place` of this rank in the communicator.
  LeftBroadcast(const Communicator& row, std::uint32_t place, std::uint32_t root, std::uint64_t bytes,
                std::uint64_t step);

  bool round(std::uint32_t number, flight::Transfers& transfers) const override;

 private:
  enum class Way : std::uint8_t { tree, doubling, ring };

  std::uint64_t between(std::uint32_t first, std::uint32_t last) const;  // parts
  void send(flight::Transfers& transfers, std::uint32_t to, std::uint32_t round, std::uint64_t bytes) const;
  void receive(flight::Transfers& transfers, std::uint32_t from, std::uint32_t round, std::uint64_t bytes) const;
  void give(flight::Transfers& transfers) const;

  Communicator row_{0, 1, 1, 1};
  std::uint32_t root_ = 0;
  std::uint32_t place_ = 0;  // from the root
  std::uint64_t bytes_ = 0;
  std::uint64_t part_ = 0;
  std::uint32_t tag_ = 0;
  Way way_ = Way::tree;
};

}  // namespace dryfly::motif::hplmxp
