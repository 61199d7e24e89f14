#include "launch/ending.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace dryfly::launch {
namespace {

Ending from_wait_status(int status) {
  if (WIFSIGNALED(status)) return {true, WTERMSIG(status)};
  return {false, WEXITSTATUS(status)};
}

std::optional<Ending> ending_of_child(int pidfd) {
  siginfo_t info{};
  if (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return {};
  return Ending{info.si_code != CLD_EXITED, info.si_status};
}

// As in Linux' uapi/linux/pidfd.h since 6.15, which Debian 12's headers do not have yet.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];  // pid, tgid, ppid, and four uids and four gids
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t pidfd_info_exit = 1U << 3;
constexpr unsigned long pidfd_get_info = _IOWR(0xFF, 11, PidfdInfo);

std::optional<Ending> ending_from_pidfd(int pidfd) {
  PidfdInfo info{};
  info.mask = pidfd_info_exit;
  if (ioctl(pidfd, pidfd_get_info, &info) != 0 || (info.mask & pidfd_info_exit) == 0) return {};
  return from_wait_status(info.exit_code);
}

std::optional<Ending> ending_from_proc(int pidfd, pid_t pid) {
  const int file = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[2048];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return {};
  text[size] = '\0';
  // "PID (COMMAND) STATE ...": the command may hold anything, so the fields count from the last parenthesis.
  const char* state = std::strrchr(text, ')');
  if (state == nullptr || std::strncmp(state, ") Z ", 4) != 0) return {};
  // That the process can still be named by its pidfd says that the number has not gone to another one meanwhile.
  if (syscall(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0) != 0) return {};
  const char* last = std::strrchr(text, ' ');  // field 52, the last one, is the wait status
  return from_wait_status(std::atoi(last));
}

}  // namespace

std::optional<Ending> ending_of(int pidfd, pid_t pid) {
  if (auto ending = ending_of_child(pidfd)) return ending;
  if (auto ending = ending_from_pidfd(pidfd)) return ending;
  if (auto ending = ending_from_proc(pidfd, pid)) return ending;
  return ending_from_pidfd(pidfd);  // it may have been reaped between the two
}

std::optional<int> signal_in_exit_code(int code) {
  constexpr int last_signal = 64;
  if (code > 128 && code <= 128 + last_signal) return code - 128;
  if (code >= 256 - last_signal && code < 256) return 256 - code;
  return {};
}

}  // namespace dryfly::launch
