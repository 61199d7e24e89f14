// Where ranks come in: an abstract unix socket, served by a thread of its own so that the conductor's loop never
// looks at descriptors. Greetings and departures are left in a queue for the conductor, which answers them. The
// thread also watches the life line: when its other end closes, the run is over and the process ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "wire/wire.hpp"

namespace dryfly {

struct Visit {
  enum class Kind : std::uint8_t { hello, process_ended } kind = Kind::hello;
  int socket = -1;  // hello: to be answered with welcome() or closed
  wire::Hello hello{};
  std::uint32_t rank = 0;  // process_ended
  std::uint32_t pid = 0;
};

class Door {
 public:
  // Throws std::system_error when the name is taken. `knock` is called from the thread when a visit was queued.
  Door(const std::string& name, int life_line, std::function<void()> knock);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  bool has_visits() const { return waiting_.load(std::memory_order_acquire); }
  std::vector<Visit> take_visits();
  // Answers a hello; `segment` travels along. The socket stays open until the process ends, and longer unless the
  // caller closes it; one that was refused is closed here.
  void welcome(int socket, const wire::Welcome& welcome, int segment);
  // From now on the end of that process is reported.
  void watch(std::uint32_t rank, std::uint32_t pid);
  // The life line broke: whoever started the run is gone or satisfied.
  bool over() const { return over_.load(std::memory_order_acquire); }

 private:
  struct Watched {
    int descriptor;
    std::uint32_t rank;
    std::uint32_t pid;
  };

  void serve();
  void accept_visitor();
  void queue(Visit visit);
  void wake_thread();

  int listener_ = -1;
  int life_line_ = -1;
  int wake_ = -1;  // eventfd
  std::function<void()> knock_;
  std::atomic<bool> waiting_{false};
  std::atomic<bool> over_{false};
  std::atomic<bool> closing_{false};
  std::mutex mutex_;
  std::vector<Visit> visits_;
  std::vector<Watched> watched_;
  std::thread thread_;
};

}  // namespace dryfly
