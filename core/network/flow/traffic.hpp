// What becomes of a transfer, from its submission to its end: it waits in its line, leaves its NIC whole (Shorts) or as
// a stream (Streams), is delivered when its last packet has made the way, and acknowledged when that answer is home.
// With faults what is lost is sent again by the schedule of the NIC (docs/model/reliability.md#retry-schedule): an
// unordered transfer its lost packets, an ordered one all from the first lost on, and with it what was sent behind it
// in its line, which the target refuses.
//
// Leaves out what the packet model knows of single packets: the order in which those of different transfers pass a
// link, and credits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/contract/network.hpp"
#include "core/contract/observer.hpp"
#include "core/engine/engine.hpp"
#include "core/network/fabric/frames.hpp"
#include "core/network/flow/bus_turns.hpp"
#include "core/network/flow/losses.hpp"
#include "core/network/flow/open_transfers.hpp"
#include "core/network/flow/pipes.hpp"
#include "core/network/flow/shorts.hpp"
#include "core/network/flow/streams.hpp"
#include "core/network/flow/ways.hpp"

namespace dryfly::flow {

// Bits 59..56 of an event's key are the life of the network, so that what was expected before a restart is known for
// what it is; 55..52 the kind, 31..0 a transfer, stream or NIC.
enum class EventKind : std::uint8_t {
  delivered,
  acknowledged,
  stream_due,
  nic_wakes,
  hold_over,
  bus_free,
  retry_due,
  look,
  shares_due
};
constexpr std::uint64_t event_key(std::uint32_t life, EventKind kind, std::uint32_t index = 0) {
  return static_cast<std::uint64_t>(ComponentClass::fabric) << component_class_shift |
         static_cast<std::uint64_t>(life & 0xf) << 56 | static_cast<std::uint64_t>(kind) << 52 | index;
}

class Traffic final : private ShortsOutlet {
 public:
  // With `start` from a restart: faults count from there.
  Traffic(Engine& engine, const Dragonfly& dragonfly, const Spec& text, std::optional<Instant> start,
          std::uint32_t life);

  void connect(TransferSink* sink, HostBus* bus);
  void observe(NetworkObserver* observer) { observer_ = observer; }
  void submit(const Transfer& asked);
  void handle(Event event);
  void end_faults();

  bool at_rest() const { return transfers_.in_use() == 0; }
  NetworkTotals totals() const;
  // Of the NICs that have had any trouble.
  const std::map<NicId, NicAccount>& accounts() const { return accounts_; }
  Losses* losses() const { return losses_.get(); }
  const Pipes& pipes() const { return pipes_; }

 private:
  void schedule(std::uint64_t at_ps, EventKind kind, std::uint32_t index);
  // Of `none` nothing.
  void start(std::uint32_t index);
  void start_stream(std::uint32_t index);
  void stream_due(std::uint32_t stream);
  void departs(std::uint32_t index) override;
  void lay(std::uint32_t index);
  // All of it has left its NIC, from the first to the last byte in these times, and comes to its target then.
  void sent(std::uint32_t index, std::uint64_t from_ps, std::uint64_t deliver_ps);
  void next_of_line(std::uint32_t index);
  void deliver(std::uint32_t index);
  void acknowledge(std::uint32_t index);
  void show(const OpenTransfer& transfer);

  // With faults.
  std::uint32_t lost_of(std::uint32_t index, std::uint64_t from_ps, std::uint64_t to_ps);
  bool answer_is_lost(std::uint32_t index);
  void wait_for_timeout(std::uint32_t index, std::uint32_t packets);
  void retry(std::uint32_t index);
  void send_again(std::uint32_t index);
  void give_up(std::uint32_t index);
  void leave_window(OpenTransfer& transfer);

  Engine& engine_;
  const fabric::FabricSpec fabric_;
  fabric::RetrySchedule retry_;
  const fabric::Wiring wiring_;
  const fabric::Frames frames_;
  Pipes pipes_;
  Ways ways_;
  OpenTransfers transfers_;
  Shorts shorts_;
  Streams streams_;
  std::unique_ptr<Losses> losses_;  // with faults only
  TransferSink* sink_ = nullptr;
  BusTurns bus_;
  NetworkObserver* observer_ = nullptr;
  std::vector<std::uint32_t> begun_;  // by NIC: its transfers, which name their draws
  std::vector<std::uint32_t> of_stream_;
  std::vector<std::uint32_t> ports_;
  NetworkTotals totals_;
  std::map<NicId, NicAccount> accounts_;
  std::uint32_t life_;
};

}  // namespace dryfly::flow
