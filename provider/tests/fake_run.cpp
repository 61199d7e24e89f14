#include "provider/tests/fake_run.hpp"

#include <cstring>

namespace dryfly::test {

FakeRun& fake_run() {
  static FakeRun run = [] {
    FakeRun made;
    made.header = new wire::SegmentHeader{};
    made.page = new wire::RankPage{};
    made.header->costs = costs;
    made.header->inline_max = 192;
    made.header->service.triggered_operations = 504;
    made.welcome.rank = 1;
    made.welcome.rank_count = 4;
    made.welcome.nics_per_node = 4;
    made.welcome.nic_index = 2;
    std::strcpy(made.welcome.node_name, "nid000001");
    return made;
  }();
  return run;
}

std::uint64_t FakeRun::now_ps() const { return rank::Channel::get()->now(); }

void FakeRun::add(wire::Event event, std::uint64_t after_ps, const std::string& payload) {
  event.at_ps = now_ps() + after_ps;
  event.record_bytes = wire::event_bytes;
  if (!payload.empty()) event.flags |= wire::event_flag::payload_inline;
  events.push_back(event);
  payloads.push_back(payload);
}

}  // namespace dryfly::test

namespace dryfly::rank {

using test::fake_run;

Channel* Channel::attach() {
  if (!fake_run().present) return nullptr;
  Attachment attachment;
  attachment.welcome = fake_run().welcome;
  attachment.socket = fake_run().wake_descriptor;
  attachment.header = fake_run().header;
  attachment.page = fake_run().page;
  static Channel channel(attachment, nullptr);
  channel.attachment_ = attachment;  // a test may have changed the run since
  return &channel;
}

Channel* Channel::get() { return attach(); }

void Channel::push(wire::Command& command, const void* payload) {
  command.at_ps = now();
  test::PushedCommand pushed{command, {}};
  if (payload != nullptr) pushed.payload.assign(static_cast<const char*>(payload), command.length);
  fake_run().pushed.push_back(pushed);
}

void push_for_stream(Channel& channel, wire::Command& command, std::uint64_t at_ps) {
  channel.push(command, nullptr);
  fake_run().pushed.back().command.at_ps = at_ps;
}

bool Channel::push_with_payload(wire::Command& command, const void* payload, std::uint64_t length, bool stable) {
  if (fake_run().pushes_to_refuse > 0) {
    --fake_run().pushes_to_refuse;
    return false;
  }
  command.length = length;
  push(command, payload);
  fake_run().pushed.back().stable = stable;
  return true;
}

const wire::Event* Channel::peek() {
  const auto& events = fake_run().events;
  return events.size() > fake_run().under_way && events.front().at_ps <= now() ? &events.front() : nullptr;
}

void Channel::pop() {
  fake_run().events.pop_front();
  fake_run().payloads.pop_front();
}

int Channel::place(const wire::Event& event, void* to) {
  std::memcpy(to, fake_run().payloads.front().data(), event.place_length);
  return 0;
}

int Channel::gate(wire::GateKind) { return 0; }

void Gate::publish() {}

// What NICs tell a test is there from the beginning.
void Gate::stop(wire::GateKind, std::uint64_t, long) {}

void Baton::ask_again() {}

bool Polls::may_sleep() { return fake_run().events.empty(); }

// The events of a test are all there from the beginning, but for those that it says are under way.
void Polls::settle() {
  ++fake_run().settle_calls;
  fake_run().under_way = 0;
}

// Which polls find nothing is the channel's own affair.
bool Polls::take_free_poll() { return false; }

// As in a blocking call: an empty poll, and then time goes to the next event.
bool Polls::idle() {
  Channel& channel = *Channel::get();
  ++fake_run().idle_calls;
  if (fake_run().under_way == fake_run().events.size()) fake_run().under_way = 0;
  if (channel.peek() != nullptr) return true;
  if (fake_run().events.empty()) return false;
  channel.charge(channel.header().costs.poll_ps);
  const std::uint64_t next_ps = fake_run().events.front().at_ps;
  if (next_ps > channel.now()) channel.charge(next_ps - channel.now());
  return true;
}

bool Polls::idle_until(std::uint64_t deadline_ps) {
  Channel& channel = *Channel::get();
  const auto& events = fake_run().events;
  if (!events.empty() && events.front().at_ps <= deadline_ps) return idle();
  channel.charge(channel.header().costs.poll_ps);
  if (deadline_ps > channel.now()) channel.charge(deadline_ps - channel.now());
  return false;
}

}  // namespace dryfly::rank
