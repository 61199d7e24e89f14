#include "provider/process.hpp"

#include <pthread.h>

namespace dryfly::provider {

namespace {

constinit Process the_process;

void after_fork_in_child() {
  the_process.detached = true;
  the_process.lock.reset();
}

}  // namespace

Process& process() { return the_process; }

rank::Channel* attach() {
  static bool watching_forks = false;
  the_process.lock.acquire();
  rank::Channel* channel = the_process.detached ? nullptr : rank::Channel::attach();
  if (channel != nullptr && !watching_forks) {
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    watching_forks = true;
  }
  the_process.lock.release();
  return channel;
}

}  // namespace dryfly::provider
