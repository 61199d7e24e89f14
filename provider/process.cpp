#include "provider/process.hpp"

#include <pthread.h>

#include "provider/ep.hpp"
#include "provider/memory_watch.hpp"
#include "provider/streams.hpp"

namespace dryfly::provider {

namespace {

constinit Process the_process;

void after_fork_in_child() {
  the_process.detached = true;
  the_process.lock.reset();
  watch_in_child();
}

// All threads of a rank have one gate, so where there may be several, what the preload asks for takes the lock too.
int gate_of_preload(wire::GateKind kind) {
  rank::Channel* const channel = rank::Channel::get();
  if (channel == nullptr) return 0;
  if (!channel->polls().has_threads()) return channel->gate(kind);
  const Session session;
  return session ? session.channel().gate(kind) : 0;
}

// The process is bound elsewhere. End-points that open later find it in the rank's page; the conductor moves all others
// by one command of any.
void move_with_process(const rank::Self& self) {
  const Session session;
  if (!session) return;
  for (const Endpoint* endpoint : session.state().endpoints) {
    if (endpoint == nullptr || !endpoint->enabled) continue;
    wire::Command command = endpoint->command(wire::CommandKind::move);
    command.flags |= wire::command_flag::payload_inline;
    command.length = sizeof self.place;
    return session.channel().push(command, &self.place);
  }
}

}  // namespace

Process& process() { return the_process; }

rank::Channel* attach() {
  static bool watching_forks = false;
  the_process.lock.acquire();
  rank::Channel* channel = the_process.detached ? nullptr : rank::Channel::attach();
  if (channel != nullptr) channel->call_by(gate_of_preload, move_with_process);
  if (channel != nullptr) serve_streams(*channel);
  if (channel != nullptr && !watching_forks) {
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    watching_forks = true;
  }
  the_process.lock.release();
  return channel;
}

}  // namespace dryfly::provider
