// What will be needed soon is fetched into the cache: the records of a large run are far larger than any cache, and
// waiting for them is most of what a message costs. Nothing here changes a result.
#include <iterator>

#include "core/nic/messages.hpp"
#include "core/nic/transport.hpp"

namespace dryfly::nic {

namespace {

// How many others come before it, by the stage of Recipient::soon.
constexpr std::size_t others_before[] = {8, 4, 2};

}  // namespace

void Transport::look_ahead(const Fifo<Arrival>& arrivals) const {
  for (unsigned stage = 0; stage < std::size(others_before); ++stage) {
    if (const Arrival* next = arrivals.ahead(others_before[stage])) recipient_.soon(next->parcel, stage);
  }
}

void Transport::look_ahead(const Fifo<Parcel>& parcels) const {
  if (const Parcel* next = parcels.ahead(others_before[0])) recipient_.soon(*next, 0);
}

// Of the stages with a queue for each end-point; the others look ahead in theirs.
void Transport::fetch(Event event, unsigned stage) const {
  if (stage_of(event) != Stage::own_ingress) return;
  const Port& target = port(EndpointId{static_cast<std::uint32_t>(event.key)});
  if (stage == 0) {
    __builtin_prefetch(&target.own_ingress);
  } else if (const Arrival* head = target.own_ingress.ahead(0)) {
    recipient_.soon(head->parcel, stage - 1);
  }
}

void Messages::soon(Parcel parcel, unsigned stage) const {
  if (parcel.step == Step::drop_notice || parcel.step == Step::resume || parcel.step == Step::no_room) return;
  if (stage == 0) return messages_.fetch(parcel.operation);
  const Message& message = messages_[parcel.operation];
  const EndpointId target = message.command.target;
  if (target.value >= inboxes_.size() || inboxes_[target.value] == nullptr) return;
  const Inbox& at = *inboxes_[target.value];
  if (stage == 1) {
    __builtin_prefetch(&at);
    __builtin_prefetch(&at.posted);
  } else {
    const SendCommand& command = message.command;
    at.posted.soon({command.envelope.tagged, command.source, command.envelope.tag});
  }
}

}  // namespace dryfly::nic
