#include "launch/spawn.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "core/unit/check.hpp"

namespace dryfly::launch {
namespace {

// What the child reads and the one thing it writes, in the memory it shares with its parent, which stands still
// until the child has called exec or is gone.
struct ChildTask {
  const SpawnRequest* request;
  char** arguments;
  char** environment;
  pid_t parent;
  bool failed_in_directory;
  int error;
};

// Runs in the parent's memory: system calls only.
int run_child(void* raw) {
  auto& task = *static_cast<ChildTask*>(raw);
  const SpawnRequest& request = *task.request;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != task.parent) _exit(127);  // the parent died before that took effect
  if (request.own_group) setpgid(0, 0);
  if (request.stdin_fd != STDIN_FILENO) dup2(request.stdin_fd, STDIN_FILENO);
  fcntl(request.pmi_fd, F_SETFD, 0);
  // Ranks whose memory is laid out alike can share what is the same in all of them, and a program that looks at its
  // addresses finds the same in each run. Where this is forbidden, neither holds.
  const int usual = personality(0xffffffff);
  if (usual >= 0) personality(static_cast<unsigned long>(usual) | ADDR_NO_RANDOMIZE);
  setrlimit(RLIMIT_NOFILE, &request.descriptor_limit);
  if (!request.directory.empty() && chdir(request.directory.c_str()) != 0) {
    task.failed_in_directory = true;
  } else {
    sigprocmask(SIG_SETMASK, &request.signal_mask, nullptr);
    execvpe(task.arguments[0], task.arguments, task.environment);
  }
  task.error = errno;
  _exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  // exec's prototype is older than const; it does not write.
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

class Stack {
 public:
  explicit Stack(std::size_t size)
      : size_(size),
        base_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {
    DRYFLY_CHECK(base_ != MAP_FAILED);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack() { munmap(base_, size_); }

  void* top() const { return static_cast<char*>(base_) + size_; }

 private:
  std::size_t size_;
  void* base_;
};

}  // namespace

std::variant<Spawned, SpawnFailure> spawn(const SpawnRequest& request) {
  const auto arguments = pointers(request.command);
  const auto environment = pointers(request.environment);
  ChildTask task{
      &request, const_cast<char**>(arguments.data()), const_cast<char**>(environment.data()), getpid(), false, 0};
  // execvpe keeps a path and, for a script without `#!`, a second argument array on the stack.
  const std::size_t page = 4096;
  const std::size_t needed = 32 * page + PATH_MAX + NAME_MAX + sizeof(char*) * arguments.size();
  const Stack stack((needed + page - 1) / page * page);
  Spawned spawned;
  spawned.pid = clone(run_child, stack.top(), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &task, &spawned.pidfd);
  if (spawned.pid < 0) return SpawnFailure{request.command.front(), errno};
  if (task.error == 0) return spawned;
  close(spawned.pidfd);
  waitpid(spawned.pid, nullptr, 0);
  return SpawnFailure{task.failed_in_directory ? request.directory : request.command.front(), task.error};
}

}  // namespace dryfly::launch
