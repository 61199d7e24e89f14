#include "launch/shim.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "launch/descendants.hpp"
#include "launch/ending.hpp"
#include "launch/local_socket.hpp"
#include "launch/signals.hpp"
#include "launch/spawn.hpp"

namespace dryfly::launch {
namespace {

using namespace std::chrono_literals;

constexpr int exit_of_signal = 128;

struct Task {
  std::vector<std::string> texts;
  int pmi_fd = -1;
};

int connect_to(const std::string& name) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const LocalAddress address(name);
  if (fd < 0 || connect(fd, address.get(), address.bytes) != 0) return -1;
  return fd;
}

void tell(int fd, const std::string& line) {
  const std::string text = line + "\n";
  // Short enough to go at once; if nobody is there any more, the connection says so.
  [[maybe_unused]] const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

bool is_complete(std::string_view bytes) {
  return bytes == std::string_view("\0", 1) || bytes.ends_with(std::string_view("\0\0", 2));
}

std::optional<Task> receive_task(int fd) {
  Task task;
  std::string bytes;
  while (!is_complete(bytes)) {
    std::array<char, 16384> piece{};
    iovec part{piece.data(), piece.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return {};
    bytes.append(piece.data(), static_cast<std::size_t>(size));
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&task.pmi_fd, CMSG_DATA(header), sizeof task.pmi_fd);
    }
  }
  for (std::string_view rest = bytes; rest.size() > 1;) {
    task.texts.emplace_back(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(task.texts.back().size() + 1);
  }
  return task;
}

// Sets up this process's environment, which the rank gets.
SpawnRequest prepare(const Task& task, const Signals& signals) {
  SpawnRequest request;
  for (const std::string& text : task.texts) {
    const std::size_t blank = text.find(' ');
    const std::string what = text.substr(0, blank);
    const std::string value = text.substr(blank + 1);
    if (what == "arg") {
      request.command.push_back(value);
    } else if (what == "stdin") {
      request.stdin_fd = open(value.c_str(), O_RDONLY | O_CLOEXEC);
    } else if (what == "unset") {
      unsetenv(value.c_str());
    } else {
      const std::size_t equals = value.find('=');
      setenv(value.substr(0, equals).c_str(), value.c_str() + equals + 1, what == "env" ? 1 : 0);
    }
  }
  if (task.pmi_fd >= 0) setenv("PMI_FD", std::to_string(task.pmi_fd).c_str(), 1);
  for (char** variable = environ; *variable != nullptr; ++variable) request.environment.emplace_back(*variable);
  request.pmi_fd = task.pmi_fd;
  // Launchers end what they have started by its group.
  request.own_group = false;
  request.signal_mask = signals.original_mask;
  getrlimit(RLIMIT_NOFILE, &request.descriptor_limit);
  return request;
}

// Until dryfly-launch lets go or a signal comes; gives the exit status.
int watch(int socket_fd, const std::string& rank, const Spawned& child, const Signals& signals) {
  const int signal_fd = signalfd(-1, &signals.answered, SFD_CLOEXEC);
  std::array<pollfd, 3> sources{{{socket_fd, POLLIN, 0}, {signal_fd, POLLIN, 0}, {child.pidfd, POLLIN, 0}}};
  while (true) {
    if (poll(sources.data(), sources.size(), -1) < 0) continue;
    if (sources[2].revents != 0) {
      sources[2].fd = -1;  // poll() passes over it from now on
      const auto ending = ending_of(child.pidfd, child.pid).value_or(Ending{});
      const std::string what = ending.by_signal ? "signal " : "exit ";
      tell(socket_fd, what + rank + " " + std::to_string(child.pid) + " " + std::to_string(ending.value));
    }
    if (sources[0].revents != 0) return 0;  // dryfly-launch says nothing here: it has let go, or is gone
    if (sources[1].revents != 0) {
      signalfd_siginfo info{};
      if (read(signal_fd, &info, sizeof info) != sizeof info) continue;
      tell(socket_fd, "told " + rank + " " + std::to_string(info.ssi_signo));
      return exit_of_signal + static_cast<int>(info.ssi_signo);
    }
  }
}

}  // namespace

int run_shim(const std::string& socket_name, const std::string& rank_variable) {
  const Signals signals = Signals::take_over();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const char* number = getenv(rank_variable.c_str());
  if (number == nullptr) {
    std::fprintf(stderr, "dryfly-launch: the launcher has set no %s, which says the rank\n", rank_variable.c_str());
    return 2;
  }
  const std::string rank = number;
  const int fd = connect_to(socket_name);
  if (fd < 0) {
    std::fprintf(stderr, "dryfly-launch: rank %s does not find its job; every rank runs on the host of dryfly run\n",
                 rank.c_str());
    return 1;
  }
  tell(fd, "rank " + rank);
  const auto task = receive_task(fd);
  if (!task) return 1;
  const SpawnRequest request = prepare(*task, signals);
  const auto result = spawn(request);
  if (task->pmi_fd >= 0) close(task->pmi_fd);
  if (const auto* failure = std::get_if<SpawnFailure>(&result)) {
    tell(fd, "noexec " + rank + " " + std::to_string(failure->error) + " " + failure->path);
    pollfd source{fd, POLLIN, 0};
    poll(&source, 1, -1);
    return 0;
  }
  const Spawned& child = std::get<Spawned>(result);
  tell(fd, "started " + rank + " " + std::to_string(child.pid));
  const int status = watch(fd, rank, child, signals);
  end_all_descendants(500ms, 4000ms);
  return status;
}

}  // namespace dryfly::launch
