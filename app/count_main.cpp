// dryfly-count PROGRAM ARGS...: runs a rank and counts the instructions that its MPI library executes, one by one
// (ptrace). Started by `dryfly mpi measure`; preload/clock/software.cpp says where an MPI call begins and ends.
//
// Counted is whatever runs between those two but the program itself and dryfly's own libraries. Through those the rank
// runs at full speed, with a breakpoint where it will come back. What was counted so far is written into the rank's
// memory before it gets there.
//
// Exit status: the program's; 70: it cannot be traced, with the sentence on stderr.
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "rank/software.hpp"

namespace {

using dryfly::rank::counter_magic;
using dryfly::rank::CounterCall;

constexpr int refused_status = 70;
constexpr std::uint64_t breakpoint = 0xcc;

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "dryfly: instructions cannot be counted: %s: %s\n", what, std::strerror(errno));
  std::exit(refused_status);
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Which code is whose.
class Map {
 public:
  explicit Map(pid_t process) : process_(process) {}

  bool is_counted(std::uint64_t address) {
    if (last_ != nullptr && last_->holds(address)) return last_->counted;
    last_ = find(address);
    if (last_ == nullptr) {
      read();
      last_ = find(address);
    }
    return last_ != nullptr && last_->counted;
  }

 private:
  struct Part {
    std::uint64_t begin;
    std::uint64_t end;
    bool counted;
    bool holds(std::uint64_t address) const { return begin <= address && address < end; }
  };

  const Part* find(std::uint64_t address) const {
    for (const Part& part : parts_) {
      if (part.holds(address)) return &part;
    }
    return nullptr;
  }

  void read() {
    const std::string folder = "/proc/" + std::to_string(process_);
    char program[4096] = {};
    if (readlink((folder + "/exe").c_str(), program, sizeof program - 1) < 0) refuse("/proc/PID/exe");
    parts_.clear();
    std::ifstream maps(folder + "/maps");
    for (std::string line; std::getline(maps, line);) {
      std::istringstream words(line);
      std::string range, rights, offset, device, inode, path;
      words >> range >> rights >> offset >> device >> inode >> path;
      if (rights.size() < 3 || rights[2] != 'x') continue;
      const std::string name = file_name(path);
      const bool ours = name.starts_with("libdryfly") || name.starts_with("libcxi-fi") || name.starts_with("libshm-fi");
      const bool library = path.starts_with('/') && !ours && path != program;
      const std::size_t dash = range.find('-');
      parts_.push_back(
          {std::stoull(range.substr(0, dash), nullptr, 16), std::stoull(range.substr(dash + 1), nullptr, 16), library});
    }
  }

  pid_t process_;
  std::vector<Part> parts_;
  const Part* last_ = nullptr;
};

class Counter {
 public:
  explicit Counter(pid_t process) : process_(process), map_(process) {}

  // To the end of the process; its wait status.
  int run() {
    int status = wait_for_stop();  // at its exec
    if (WIFSTOPPED(status)) {
      ptrace(PTRACE_SETOPTIONS, process_, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC);
    }
    int signal = 0;
    while (WIFSTOPPED(status)) {
      ptrace(stepping_ && !returns_to_ ? PTRACE_SINGLESTEP : PTRACE_CONT, process_, nullptr, signal);
      status = wait_for_stop();
      signal = WIFSTOPPED(status) ? stopped(WSTOPSIG(status), status >> 16) : 0;
    }
    return status;
  }

 private:
  int wait_for_stop() const {
    int status = 0;
    while (waitpid(process_, &status, __WALL) < 0) {
      if (errno != EINTR) refuse("waitpid");
    }
    return status;
  }

  std::uint64_t read_user(std::size_t offset) const {
    return static_cast<std::uint64_t>(ptrace(PTRACE_PEEKUSER, process_, offset, nullptr));
  }
  std::uint64_t instruction() const { return read_user(offsetof(user_regs_struct, rip)); }
  std::uint64_t word_at(std::uint64_t address) const {
    return static_cast<std::uint64_t>(ptrace(PTRACE_PEEKDATA, process_, address, nullptr));
  }
  void put_word(std::uint64_t address, std::uint64_t word) const {
    if (ptrace(PTRACE_POKEDATA, process_, address, word) != 0) refuse("the rank's memory");
  }

  // The signal to be passed on.
  int stopped(int signal, int event) {
    if (signal != SIGTRAP) return signal;
    if (event != 0) return 0;  // another exec
    const std::uint64_t at = instruction();
    if (returns_to_ && at == *returns_to_ + 1) {
      put_word(*returns_to_, replaced_);
      ptrace(PTRACE_POKEUSER, process_, offsetof(user_regs_struct, rip), *returns_to_);
      returns_to_.reset();
      return 0;
    }
    if ((word_at(at - 1) & 0xff) == breakpoint && read_user(offsetof(user_regs_struct, rax)) == counter_magic) {
      called();
    } else if (stepping_) {
      stepped_to(at);
    }
    return 0;
  }

  void called() {
    const auto what = static_cast<CounterCall>(read_user(offsetof(user_regs_struct, rdi)));
    executed_at_ = read_user(offsetof(user_regs_struct, rsi));
    stepping_ = what == CounterCall::begin || what == CounterCall::resume;
    was_counted_ = false;
    if (what == CounterCall::begin) depth_begins_ = true;
    if (what == CounterCall::end) put_word(executed_at_, executed_);
  }

  void stepped_to(std::uint64_t at) {
    if (was_counted_) ++executed_;  // the one that was just executed
    const bool counted = map_.is_counted(at);
    if (counted && !was_counted_ && depth_begins_) {
      leaves_to_ = word_at(read_user(offsetof(user_regs_struct, rsp)));
      depth_begins_ = false;
    }
    if (!counted && was_counted_ && at != leaves_to_) enter_ours();
    was_counted_ = counted;
  }

  // The library has called something that is not counted. At its first instruction the return address is on top.
  void enter_ours() {
    put_word(executed_at_, executed_);
    const std::uint64_t back = word_at(read_user(offsetof(user_regs_struct, rsp)));
    if (!map_.is_counted(back)) return;
    replaced_ = word_at(back);
    put_word(back, (replaced_ & ~std::uint64_t{0xff}) | breakpoint);
    returns_to_ = back;
  }

  pid_t process_;
  Map map_;
  bool stepping_ = false;
  bool was_counted_ = false;   // the instruction that comes next is the library's
  bool depth_begins_ = false;  // the library has not been entered yet
  std::uint64_t leaves_to_ = 0;
  std::uint64_t executed_ = 0;
  std::uint64_t executed_at_ = 0;
  std::uint64_t replaced_ = 0;
  std::optional<std::uint64_t> returns_to_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "dryfly-count: accepted is PROGRAM ARGS...\n");
    return 2;
  }
  const pid_t process = fork();
  if (process < 0) refuse("fork");
  if (process == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) refuse("ptrace");
    execvp(words[1], words + 1);
    refuse(words[1]);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int status = Counter(process).run();
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : refused_status;
}
