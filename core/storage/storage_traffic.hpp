// Storage groups as traffic: file-system clients on compute nodes read from and write to servers in the storage groups
// while a job runs, over the same NIC ports, links, classes and congestion management.
//
// Models how a Lustre server moves data over kfabric, as the specification says of Slingshot: the client sends a
// request; for a read the server puts the data in order into the client's memory, for a write it gets it from there;
// then it replies. A client NIC begins an exchange at even distances that give its rate, the first after a drawn
// part of one, and has no more than `in_flight` under way: one that is late makes up for it. Each exchange goes to a
// server NIC drawn for it, as a file striped over all servers would spread them. A server's storage takes or gives
// its rate and answers after its latency. What these numbers are and where they come from: data/hardware/storage.toml.
//
// Leaves out: metadata, locks, caches, several servers for one exchange; and of the NICs the pace of commands and the
// PCIe that the NICs of a socket share: an exchange is long, and its latencies in the NICs are part of the server's.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/network/shared_network.hpp"
#include "core/nic/counters.hpp"
#include "core/storage/storage_plan.hpp"

namespace dryfly::storage {

// What a stream has done.
struct StreamTotals {
  std::uint64_t exchanges = 0;  // ended well
  std::uint64_t bytes = 0;      // of these
  std::uint64_t failed = 0;     // given up by a NIC
  Duration latency_sum;         // from an exchange's begin to its reply
  Duration latency_max;
};

class StorageTraffic final : private Handler, private TransferSink {
 public:
  // Takes the whole network and leaves a share of it to the job.
  StorageTraffic(Engine& engine, Carrier& network, Plan plan, const Framing& framing);

  // Where the job connects and submits.
  SharedNetwork::Share& network() { return job_; }
  const SharedNetwork::Share& network() const { return job_; }

  void start(Instant at);
  // No exchange begins any more; those under way take their course.
  void stop() { stopped_ = true; }

  const Plan& plan() const { return plan_; }
  const std::vector<StreamTotals>& totals() const { return totals_; }
  // What this traffic has made the NICs count.
  const std::map<NicId, NicCounters>& counters() const { return counters_; }

 private:
  enum class Step : std::uint8_t { request, get, data, reply };
  enum class Kind : std::uint8_t { begin, serve };

  // Of one stream at one of its client NICs.
  struct Client {
    std::uint32_t stream = 0;
    NicId nic;
    Instant due;  // of the next exchange
    std::uint64_t begun = 0;
    std::uint32_t in_flight = 0;
    bool waits = false;  // for one under way to end
  };
  struct Server {
    NicId nic;
    Instant busy_until;
  };
  struct Exchange {
    std::uint32_t client = 0;
    std::uint32_t server = 0;
    Bytes size;
    Instant begun;
    std::uint32_t open = 0;  // transfers not acknowledged
    bool ended = false;
  };

  static constexpr unsigned step_bits = 2;
  static constexpr unsigned kind_shift = 32;

  void handle(Event event) override;
  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override;
  void acknowledged(std::uint32_t handle) override;
  void failed(std::uint32_t handle, bool delivered) override;

  void begin(std::uint32_t client);
  void serve(std::uint32_t exchange);
  void requested(std::uint32_t exchange);
  void end(std::uint32_t exchange, bool well);
  void let_go(std::uint32_t exchange);
  Bytes next_size(const Client& client) const;
  void submit(std::uint32_t exchange, Step step);
  std::uint32_t take_exchange();
  void schedule(Instant at, Kind kind, std::uint32_t index);

  Engine& engine_;
  Plan plan_;
  SharedNetwork shared_;
  SharedNetwork::Share& own_;
  SharedNetwork::Share& job_;
  Framing framing_;
  Instant start_{};
  bool stopped_ = false;
  std::vector<Client> clients_;
  std::vector<Server> servers_;
  std::vector<Exchange> exchanges_;
  std::vector<std::uint32_t> free_;
  std::vector<StreamTotals> totals_;
  std::map<NicId, NicCounters> counters_;
};

}  // namespace dryfly::storage
