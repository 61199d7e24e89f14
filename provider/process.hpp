// The provider's state in this process, and the one way into it. Every call of the API that touches shared state
// opens a Session: it holds the process's lock and says whether the process takes part in a run. A child made by
// fork does not, whatever it inherited.
#pragma once

#include "provider/environment.hpp"
#include "provider/lock.hpp"
#include "provider/news.hpp"
#include "provider/operation.hpp"
#include "rank/channel.hpp"

namespace dryfly::provider {

struct Deferred;

struct Process {
  Lock lock;
  bool detached = false;  // a child after fork
  News news;
  Operations operations;
  Environment environment = {};  // complete before there is a domain
  Deferred* deferred = nullptr;  // list of the work that is not over
  std::uint32_t counters_opened = 0;
  Counter* extended_counters = nullptr;  // list: with a doorbell or a buffer to be written back to
  Endpoint* endpoints[wire::endpoint_count_max] = {};
  CompletionQueue* owned_queues = nullptr;  // list: those that pass on to another provider's queue
};

Process& process();

// The run's channel, attached on the first call; nullptr outside a run.
rank::Channel* attach();

class Session {
 public:
  Session() : process_(process()) {
    const bool alone = process_.lock.acquire();
    channel_ = process_.detached ? nullptr : rank::Channel::get();
    if (channel_ != nullptr) channel_->enter(alone);
  }
  ~Session() { process_.lock.release(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  explicit operator bool() const { return channel_ != nullptr; }
  rank::Channel& channel() const { return *channel_; }
  Process& state() const { return process_; }

 private:
  Process& process_;
  rank::Channel* channel_;
};

}  // namespace dryfly::provider
