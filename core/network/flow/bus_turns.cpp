#include "core/network/flow/bus_turns.hpp"

#include <algorithm>
#include <utility>

namespace dryfly::flow {

void BusTurns::tell(std::uint32_t index) {
  OpenTransfer& transfer = transfers_[index];
  if (!transfer.by_bus) {
    transfer.told_packets = transfer.missing;
    return;
  }
  const NicId nic = transfer.journey.source;
  Line& line = lines_[nic.value];
  const std::uint32_t ahead = std::min(transfer.missing, transfer.reached + 2 * packets_in_piece);
  while (transfer.told_packets < ahead && !transfer.asks_bus) {
    if (line.first == none && bus_->may_send(nic) <= engine_.now()) {
      send_piece(transfer);
      continue;
    }
    transfer.asks_bus = true;
    transfer.next = none;
    (line.first == none ? line.first : transfers_[line.last].next) = index;
    line.last = index;
    if (!std::exchange(line.awaited, true)) await(nic);
  }
}

void BusTurns::send_piece(OpenTransfer& transfer) {
  const std::uint32_t packets = std::min(packets_in_piece, transfer.missing - transfer.told_packets);
  const std::uint64_t told =
      std::uint64_t{transfer.packets - transfer.missing + transfer.told_packets} * frames_.payload_max().count;
  const std::uint64_t payload = packets * frames_.payload_max().count;
  transfer.told_packets += packets;
  bus_->sends(transfer.journey.source, transfer.source_memory,
              Bytes{std::min(payload, transfer.size.count - std::min(told, transfer.size.count))}, engine_.now());
}

void BusTurns::await(NicId nic) {
  engine_.schedule(std::max(engine_.now(), bus_->may_send(nic)), key_of_free_ | nic.value);
}

// Who has had a piece goes behind the others.
std::uint32_t BusTurns::take_next(NicId nic) {
  Line& line = lines_[nic.value];
  while (line.first != none && bus_->may_send(nic) <= engine_.now()) {
    const std::uint32_t index = line.first;
    OpenTransfer& transfer = transfers_[index];
    line.first = transfer.next;
    transfer.asks_bus = false;
    const bool had_to_stop = transfer.stream == none || transfer.told_packets == transfer.reached;
    send_piece(transfer);
    if (had_to_stop) return index;
    tell(index);
  }
  line.awaited = line.first != none;
  if (line.awaited) await(nic);
  return none;
}

}  // namespace dryfly::flow
