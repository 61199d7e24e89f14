// The turns of streams at the bus between their NIC and memory: a stream asks for pieces a little ahead of what it
// sends, as a NIC fetches ahead, and where the bus has no room the streams of a NIC take turns, as they do there packet
// by packet. Leaves out turns of single packets: a piece has eight.
#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/network/fabric/frames.hpp"
#include "core/network/flow/open_transfers.hpp"

namespace dryfly::flow {

class BusTurns {
 public:
  static constexpr std::uint32_t packets_in_piece = 8;

  BusTurns(Engine& engine, const fabric::Frames& frames, std::uint32_t nics, OpenTransfers& transfers,
           std::uint64_t key_of_free)
      : engine_(engine), frames_(frames), transfers_(transfers), key_of_free_(key_of_free), lines_(nics) {}

  void connect(HostBus* bus) { bus_ = bus; }
  // None: NICs have from memory what they want.
  HostBus* bus() const { return bus_; }
  // Pieces of the stream are chosen as far as the bus allows it.
  void tell(std::uint32_t transfer);
  // At events with key_of_free and the NIC's number, until there is none: a stream that had to stop and has a piece.
  std::uint32_t take_next(NicId nic);

 private:
  struct Line {
    std::uint32_t first = none;
    std::uint32_t last = none;
    bool awaited = false;  // an event will come when the bus is free
  };

  void send_piece(OpenTransfer& transfer);
  void await(NicId nic);

  Engine& engine_;
  const fabric::Frames& frames_;
  OpenTransfers& transfers_;
  std::uint64_t key_of_free_;
  HostBus* bus_ = nullptr;
  std::vector<Line> lines_;  // by NIC
};

}  // namespace dryfly::flow
