#include "rank/channel.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <new>

#include "rank/node_accounts.hpp"

namespace dryfly::rank {

namespace {

using namespace wire;

// Made in place: the heap belongs to the program.
alignas(Channel) char channel_memory[sizeof(Channel)];
Channel* the_channel = nullptr;

// The child shares the mapping but is no rank: it forgets the channel, and its clock becomes real again.
void after_fork_in_child() {
  if (the_channel == nullptr) return;
  the_channel = nullptr;
  if (&dryfly_self != nullptr) dryfly_self.attached.store(0, std::memory_order_relaxed);
}

void begin_noise(const Attachment& attachment, Self& self) {
  self.cpu_ppb = attachment.page->share.slow.cpu_ppb;
  const Welcome& welcome = attachment.welcome;
  self.noise.begin(attachment.header->noise, welcome.node, welcome.rank_on_node, self.now(),
                   attachment.page->times.noise);
  self.set_clock(self.noise.resume_ps(self.now() + self.noise.start_skew_ps()));
}

}  // namespace

Channel* Channel::get() { return the_channel; }

Channel* Channel::attach() {
  if (the_channel != nullptr) return the_channel;
  Attachment attachment;
  if (!rank::attach(attachment)) return nullptr;
  Self* shared = &dryfly_self != nullptr ? &dryfly_self : static_cast<Self*>(dlsym(RTLD_DEFAULT, "dryfly_self"));
  the_channel = new (channel_memory) Channel(attachment, shared);
  the_channel->join();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  return the_channel;
}

void Channel::join() {
  self_->version = version;
  self_->page = attachment_.page;
  self_->header = attachment_.header;
  attachment_.page->place = self_->place;
  attachment_.page->copier.process = static_cast<std::uint32_t>(getpid());
  self_->publish = [] { get()->publish(); };
  self_->gate = [](GateKind kind) { return get()->gate(kind); };
  self_->attached.store(1, std::memory_order_release);
  if (header().served != 0 && self_->joined != nullptr) self_->joined();
}

void Channel::push(Command& command, const void* payload) {
  self_->end_telling();
  const CommandRing::Room room = commands_.room_for(command);
  if (!room.is_free) gate_.stop(GateKind::drain, 0);
  command.at_ps = gate_.instant();
  commands_.append(command, payload, room);
  polls_.acted();
  self_->has_acted.store(1, std::memory_order_relaxed);
  gate_.publish();
  // Its owner tells others of the end-point by means outside virtual time: it must be there when this returns.
  if (command.kind == CommandKind::open_endpoint) gate_.stop(GateKind::drain, 0);
}

void push_for_stream(Channel& channel, Command& command, std::uint64_t at_ps) {
  channel.gate_.acted_at(at_ps);
  const CommandRing::Room room = channel.commands_.room_for(command);
  if (!room.is_free) channel.gate_.stop(GateKind::drain, 0);
  command.at_ps = channel.gate_.instant();
  channel.commands_.append(command, &command, room);  // it brings no bytes
  channel.gate_.publish();
}

bool Channel::push_with_payload(Command& command, const void* payload, std::uint64_t length, bool stable) {
  if (!payloads_.prepare(command, payload, length, stable)) return false;
  if (command.gpu == 0 && baton_.is_used()) {
    NodeAccounts(*attachment_.header, *attachment_.page).moved_by_nic(now(), length, false);
  }
  push(command, payload);
  return true;
}

const Event* Channel::peek() {
  const Event* event = events_.visible(now());
  if (event != nullptr) polls_.meet(*event);
  return event;
}

int Channel::place(const Event& event, void* to) { return payloads_.place(event, to); }

void Channel::pop() {
  events_.pop();
  polls_.found();
}

void Channel::start() {
  start_memory_.leave_common_pages();
  start_memory_.map_ahead();
  gate_.stop(GateKind::start, far_future);
  begin_noise(attachment_, *self_);
  attachment_.page->clock_ps.store(now(), std::memory_order_seq_cst);
  start_memory_.share_common_pages();
}

int Channel::end() {
  if (!baton_.is_used() && polls_.jump_to_event()) return 0;
  gate_.stop(GateKind::end, far_future);
  self_->has_acted.store(0, std::memory_order_relaxed);
  polls_.acted();  // the test behind this gate looks once and does not wait
  if (attachment_.page->all_ended.load(std::memory_order_acquire) != 0) {
    self_->noise.end();
    return 1;
  }
  if (!baton_.is_used()) polls_.jump_to_event();
  return 0;
}

int Channel::gate(GateKind kind) {
  switch (kind) {
    case GateKind::start:
      start();
      return 0;
    case GateKind::end:
      return end();
    case GateKind::baton_back:
      baton_.give_back();
      return 0;
    case GateKind::fail:
      gate_.stop_to_fail();
      return 0;
    case GateKind::meet:
      gate_.wait(kind, far_future);
      gate_.publish();
      return 0;
    default:
      gate_.stop(kind, far_future);
      return 0;
  }
}

}  // namespace dryfly::rank
