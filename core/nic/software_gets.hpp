// Gets of rendezvous payloads that the target's CPU issues: where software matches, or where the NIC is set not to
// issue them itself. They travel in a class of their own, and only so many may be under way (cxip_recv_rdzv_cb,
// issue_rdzv_get): each takes a credit of its end-point. Of a source that asks for restricted Gets (alt_read) the CPU
// says at the end that it is done (cxip_rdzv_done_notify).
#pragma once

#include <cstdint>
#include <vector>

#include "core/nic/fifo.hpp"
#include "core/nic/inboxes.hpp"
#include "core/nic/message.hpp"
#include "core/nic/outbox.hpp"
#include "core/nic/transport.hpp"

namespace dryfly::nic {

class SoftwareGets {
 public:
  SoftwareGets(Transport& transport, const NicSpec& spec, MessageTable& messages, Inboxes& inboxes)
      : transport_(transport), spec_(spec), messages_(messages), inboxes_(inboxes) {}

  void open(EndpointId endpoint, const EndpointSettings& settings);
  // In which what this end-point's software sends travels.
  TrafficClass class_of(EndpointId endpoint) const { return gets_[endpoint.value].traffic_class; }

  bool got_by_processor(const Message& message) const;
  // Of a request without a receive that has come to software.
  void ask_to_look(std::uint32_t message);
  void ask_for_get(std::uint32_t message);
  void software_get(std::uint32_t message);
  void return_credit(const Message& message);
  void tell_done(std::uint32_t message);
  // The CPU has done what ask_for_get() or tell_done() asked for.
  void worked(const Work& work);
  // The CPU of an end-point that has closed issues nothing any more: these are to be dropped, in this order.
  std::vector<std::uint32_t> abandoned_at(EndpointId closed);

 private:
  // Of one end-point.
  struct Gets {
    TrafficClass traffic_class = TrafficClass::best_effort;
    std::uint32_t most = 0;
    std::uint32_t under_way = 0;
    Fifo<std::uint32_t> waiting;  // for a credit
  };

  void ask(std::uint32_t message);

  Transport& transport_;
  const NicSpec& spec_;
  MessageTable& messages_;
  Inboxes& inboxes_;
  std::vector<Gets> gets_;  // by end-point
};

}  // namespace dryfly::nic
