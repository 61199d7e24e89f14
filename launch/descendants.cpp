#include "launch/descendants.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace dryfly::launch {
namespace {

using Clock = std::chrono::steady_clock;

struct Stat {
  pid_t parent = -1;
  char state = '?';
};

Stat stat_of(const std::string& pid) {
  const int file = open(("/proc/" + pid + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[512];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return {};
  text[size] = '\0';
  const char* state = std::strrchr(text, ')');  // ") S PPID ..."
  return state != nullptr && std::strlen(state) > 4 ? Stat{std::atoi(state + 4), state[2]} : Stat{};
}

std::vector<pid_t> all_descendants() {
  std::multimap<pid_t, pid_t> children;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return {};
  while (const dirent* entry = readdir(directory)) {
    if (const pid_t pid = std::atoi(entry->d_name); pid > 0) children.emplace(stat_of(entry->d_name).parent, pid);
  }
  closedir(directory);
  std::vector<pid_t> found{getpid()};
  for (std::size_t next = 0; next < found.size(); ++next) {
    const auto [begin, end] = children.equal_range(found[next]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

void signal_all_descendants(int signal_number) {
  for (const pid_t pid : all_descendants()) kill(pid, signal_number);
}

bool reap_until(Clock::time_point deadline) {
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  while (true) {
    pid_t reaped = 0;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0 && errno == ECHILD) return true;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    const timespec wait{left / 1'000'000'000, left % 1'000'000'000};
    sigtimedwait(&child_ended, nullptr, &wait);
  }
}

}  // namespace

bool any_descendant_runs() {
  return std::ranges::any_of(all_descendants(), [](pid_t pid) { return stat_of(std::to_string(pid)).state == 'R'; });
}

bool end_all_descendants(std::chrono::milliseconds grace, std::chrono::milliseconds limit) {
  const auto start = Clock::now();
  if (reap_until(start)) return true;
  signal_all_descendants(SIGTERM);
  if (reap_until(start + grace)) return true;
  // Repeated, because a process may have been started by another one that was not dead yet.
  for (auto now = Clock::now(); now < start + grace + limit; now = Clock::now()) {
    signal_all_descendants(SIGKILL);
    if (reap_until(std::min(now + std::chrono::milliseconds(50), start + grace + limit))) return true;
  }
  return false;
}

}  // namespace dryfly::launch
