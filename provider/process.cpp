#include "provider/process.hpp"

#include <pthread.h>

namespace dryfly::provider {

namespace {

constinit Process the_process;

void after_fork_in_child() {
  the_process.detached = true;
  the_process.lock.reset();
}

// All threads of a rank have one gate, so where there may be several, what the preload asks for takes the lock too.
int gate_of_preload(wire::GateKind kind) {
  rank::Channel* const channel = rank::Channel::get();
  if (channel == nullptr) return 0;
  if (!channel->polls().has_threads()) return channel->gate(kind);
  const Session session;
  return session ? session.channel().gate(kind) : 0;
}

// The process is bound elsewhere, as the preload has it.
void move_with_process() {
  const Session session;
  if (session) session.channel().move();
}

}  // namespace

Process& process() { return the_process; }

rank::Channel* attach() {
  static bool watching_forks = false;
  the_process.lock.acquire();
  rank::Channel* channel = the_process.detached ? nullptr : rank::Channel::attach();
  if (channel != nullptr) {
    channel->gate_by(gate_of_preload);
    channel->move_by(move_with_process);
  }
  if (channel != nullptr && !watching_forks) {
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    watching_forks = true;
  }
  the_process.lock.release();
  return channel;
}

}  // namespace dryfly::provider
