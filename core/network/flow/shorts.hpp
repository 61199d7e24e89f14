// Short transfers at their NICs: those of up to 16 packets travel whole, one behind the other, as fast as the link, the
// window of packets and the bus allow; nobody solves anything for their sake.
//
// Models of a NIC what the packet model has for packets: turns among classes by their assured shares and below their
// ceilings, a window of unacknowledged packets for each class, and that what goes to an end-point that is hot for its
// class is held back while others overtake it (docs/model/congestion.md#congestion-management). Leaves out turns within
// a class: first come, first sent.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/flow/open_transfers.hpp"
#include "core/network/flow/pipes.hpp"
#include "core/unit/key_table.hpp"

namespace dryfly::flow {

class ShortsOutlet {
 public:
  virtual ~ShortsOutlet() = default;
  // It leaves its NIC now.
  virtual void departs(std::uint32_t transfer) = 0;
};

class Shorts {
 public:
  Shorts(Engine& engine, const fabric::FabricSpec& fabric, std::uint32_t nics, OpenTransfers& transfers, Pipes& pipes,
         ShortsOutlet& outlet, std::uint64_t key_of_waking, std::uint64_t key_of_hold);

  void connect(HostBus* bus) { bus_ = bus; }
  // Behind all of its class.
  void add(std::uint32_t transfer);
  // At events with key_of_waking and the NIC's number; with key_of_hold and the name of the hold.
  void wake(NicId nic);
  void end_hold(std::uint32_t name);
  // So many packets of the class are acknowledged or given up.
  void leave_window(NicId nic, std::uint32_t traffic_class, std::uint32_t packets);

 private:
  struct Queue {
    std::uint32_t first = none;
    std::uint32_t last = none;
    std::uint32_t in_flight = 0;  // packets
  };
  struct Nic {
    std::uint32_t classes = 0;  // bits: those that wait
    std::uint32_t arbiter = none;
    std::uint64_t wake_at_ps = never.ps;
  };
  // Those of a class that wait for a hot target.
  struct Hold {
    std::uint32_t first = none;
    std::uint32_t last = none;
  };

  Queue& queue(NicId nic, std::uint32_t traffic_class) { return queues_[traffic_class][nic.value]; }
  void send(NicId nic);
  void wake_at(NicId nic, std::uint64_t at_ps);
  // The class whose turn it is; no_class: a later instant.
  std::uint32_t choose(NicId nic, std::uint32_t ready, std::uint64_t& later_ps);
  std::uint32_t take_first(NicId nic, std::uint32_t traffic_class);
  void send_first(NicId nic, std::uint32_t traffic_class);
  bool is_held_back(std::uint32_t transfer);
  static constexpr std::uint32_t nic_bits = 28;
  static constexpr std::uint32_t most_nic = (1U << nic_bits) - 1;
  static std::uint32_t hold_name(NicId target, std::uint32_t traffic_class) {
    return traffic_class << nic_bits | target.value;
  }
  void look_again(std::uint32_t name, std::uint64_t waiting_ps);

  Engine& engine_;
  OpenTransfers& transfers_;
  Pipes& pipes_;
  ShortsOutlet& outlet_;
  HostBus* bus_ = nullptr;
  fabric::QosProfile qos_;
  std::uint64_t key_of_waking_;
  std::uint64_t key_of_hold_;
  std::uint32_t window_packets_;
  bool holds_back_;
  std::uint64_t hot_ps_;
  std::vector<Nic> nics_;
  std::array<std::vector<Queue>, fabric::most_classes> queues_;  // by NIC; empty until one of the class comes
  std::vector<fabric::Arbiter> arbiters_;
  KeyTable<Hold> holds_;  // by name
};

}  // namespace dryfly::flow
