// The queues by which NICs get: what is longer than a packet is asked for one Get of a queue after the other, packet by
// packet, with a window of packets that are under way. So a NIC gets from as many others at once as it has queues,
// however many have something for it. By which queue it gets something is drawn.
//
// Models docs/model/nic-protocols.md#queues-of-gets. Stands between the NICs and their network: to the NICs an answer
// is one transfer, to the network each of its parts is one, which leaves when enough of those before it is there. The
// parts of an answer become shorter towards its end, as far as half of the window, so that the next one begins in time.
// The requests for each packet are left out, and the time that one takes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/network.hpp"
#include "core/nic/fifo.hpp"
#include "core/nic/get_turns.hpp"
#include "core/nic/parcel.hpp"
#include "core/unit/key_table.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::nic {

class GetQueues final : public Carrier, private TransferSink {
 public:
  class Owner {
   public:
    // Whether software asks for the rest of that message; else its NIC does by itself.
    virtual bool is_asked_by_software(std::uint32_t message) const = 0;
    // The first part of that transfer leaves, which has waited for its turn.
    virtual void begins(std::uint32_t handle) = 0;

   protected:
    ~Owner() = default;
  };

  GetQueues(Carrier& below, const GetQueueSpec& spec, Owner& owner) : below_(below), spec_(spec), owner_(owner) {}

  void connect(TransferSink& sink) override {
    sink_ = &sink;
    below_.connect(*this);
  }
  void attach(HostBus& bus) override { below_.attach(bus); }
  void submit(const Transfer& transfer) override;
  bool takes_ordered() const override { return below_.takes_ordered(); }

  // At rest: what is drawn does not depend on what has been.
  void restart() {
    asked_.clear();
    answers_.restart();
    parts_.restart();
  }

 private:
  struct Answer {
    Transfer whole;
    std::uint64_t queue = 0;
    std::uint64_t left = 0;       // bytes of no part yet
    std::uint64_t to_come = 0;    // to the target
    std::uint64_t unsettled = 0;  // neither acknowledged nor given up
    unsigned under_way = 0;       // parts
    bool is_failed = false;
  };
  struct Part {
    std::uint32_t answer = 0;
    std::uint64_t bytes = 0;
  };
  struct Queue {
    Fifo<std::uint32_t> answers;  // with something left; the first may have begun
    std::uint64_t under_way = 0;  // bytes
  };

  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override;
  void acknowledged(std::uint32_t handle) override;
  void failed(std::uint32_t handle, bool delivered) override;

  bool is_asked_by_cpu(const Transfer& answer) const;
  // How many the target of such an answer has; 0: it takes no turn.
  std::uint32_t queues_for(const Transfer& answer) const;
  std::uint64_t draw_queue(const Transfer& answer);
  // How much of the answer its next part has; 0: not yet.
  std::uint64_t next_part(const Queue& queue, const Answer& answer) const;
  // What may leave does.
  void advance(std::uint64_t queue);
  // The part is no longer on its way.
  void leave(const Part& part);
  void settle(std::uint32_t part);

  Carrier& below_;
  TransferSink* sink_ = nullptr;
  GetQueueSpec spec_;
  Owner& owner_;
  std::vector<std::uint32_t> asked_;  // by NIC: answers that took their turn, modulo 2^32
  KeyTable<Queue> queues_;            // those with something in them
  Pool<Answer> answers_;
  Pool<Part> parts_;
};

}  // namespace dryfly::nic
