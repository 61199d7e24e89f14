#include "conductor/door.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

namespace dryfly {

Door::Door(const std::string& name, int life_line, std::function<void()> knock)
    : life_line_(life_line), knock_(std::move(knock)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() > sizeof address.sun_path - 2) {
    throw std::system_error(ENAMETOOLONG, std::generic_category(), "channel " + name);
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
      listen(listener_, 4096) != 0) {
    throw std::system_error(errno, std::generic_category(), "channel " + name);
  }
  wake_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { serve(); });
}

Door::~Door() {
  closing_.store(true);
  wake_thread();
  thread_.join();
  for (const auto& watched : watched_) close(watched.descriptor);
  close(listener_);
  close(wake_);
}

void Door::wake_thread() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
}

void Door::queue(Visit visit) {
  {
    const std::lock_guard lock(mutex_);
    visits_.push_back(visit);
    waiting_.store(true, std::memory_order_release);
  }
  knock_();
}

std::vector<Visit> Door::take_visits() {
  const std::lock_guard lock(mutex_);
  waiting_.store(false, std::memory_order_release);
  return std::exchange(visits_, {});
}

void Door::accept_visitor() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return;
  ucred peer{};
  socklen_t peer_bytes = sizeof peer;
  Visit visit;
  visit.socket = socket;
  // A local peer writes its greeting right after connecting, but may wait long for a processor where a thousand ranks
  // start on a few; the time limit keeps a peer that says nothing from blocking the door for ever.
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const bool same_user = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) == 0 && peer.uid == geteuid();
  const bool complete = same_user && recv(socket, &visit.hello, sizeof visit.hello, MSG_WAITALL) ==
                                         static_cast<ssize_t>(sizeof visit.hello);
  if (!complete || visit.hello.magic != wire::segment_magic) {
    close(socket);
    return;
  }
  for (char* path : {visit.hello.libmpi_path, visit.hello.libfabric_path, visit.hello.program_path}) {
    path[sizeof visit.hello.libmpi_path - 1] = 0;
  }
  // Inside another pid namespace the process does not know its pid as we do.
  visit.hello.pid = static_cast<std::uint32_t>(peer.pid);
  queue(visit);
}

void Door::welcome(int socket, const wire::Welcome& welcome, int segment) {
  iovec part{const_cast<wire::Welcome*>(&welcome), sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &segment, sizeof segment);
  sendmsg(socket, &message, MSG_NOSIGNAL);
  // Our end stays open on purpose: that it closes tells the rank that the conductor is gone.
  if (welcome.accepted == 0) close(socket);
}

void Door::watch(std::uint32_t rank, std::uint32_t pid) {
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return queue({.kind = Visit::Kind::process_ended, .rank = rank, .pid = pid});
  {
    const std::lock_guard lock(mutex_);
    watched_.push_back({descriptor, rank, pid});
  }
  wake_thread();
}

void Door::serve() {
  std::vector<pollfd> polled;
  while (!closing_.load()) {
    polled.assign({{listener_, POLLIN, 0}, {life_line_, POLLIN, 0}, {wake_, POLLIN, 0}});
    {
      const std::lock_guard lock(mutex_);
      for (const auto& watched : watched_) polled.push_back({watched.descriptor, POLLIN, 0});
    }
    if (::poll(polled.data(), polled.size(), -1) <= 0) continue;
    if (polled[2].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto got = read(wake_, &count, sizeof count);
    }
    if (polled[1].revents != 0) {
      over_.store(true, std::memory_order_release);
      knock_();
      return;
    }
    if (polled[0].revents != 0) accept_visitor();
    for (std::size_t at = 3; at < polled.size(); ++at) {
      if (polled[at].revents == 0) continue;
      const std::lock_guard lock(mutex_);
      for (auto watched = watched_.begin(); watched != watched_.end(); ++watched) {
        if (watched->descriptor != polled[at].fd) continue;
        visits_.push_back({.kind = Visit::Kind::process_ended, .rank = watched->rank, .pid = watched->pid});
        waiting_.store(true, std::memory_order_release);
        close(watched->descriptor);
        watched_.erase(watched);
        break;
      }
      knock_();
    }
  }
}

}  // namespace dryfly
