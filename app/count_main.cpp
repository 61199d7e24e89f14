// dryfly-count [--ranks=A,B...] PROGRAM ARGS...: runs a rank and counts the instructions that its MPI library executes,
// one by one (ptrace); with --ranks only in these, and others run as they are. Started by `dryfly mpi measure`;
// preload/clock/software.cpp says where an MPI call begins and ends.
//
// Counted is whatever runs between those two but the program itself and dryfly's own libraries, and what these call.
// Through those the rank runs at full speed, with a breakpoint where it will come back. What was counted so far is
// written into the rank's memory before it gets there. Whether code was called or returned to, the instruction tells
// that went there: what lies on the stack may be anything.
//
// Exit status: the program's; 70: it cannot be traced, with the sentence on stderr.
#include <errno.h>
#include <sched.h>
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
      ptrace(PTRACE_POKEUSER, process_, offsetof(user_regs_struct, rip), *returns_to_);
      was_counted_ = stepping_ && map_.is_counted(*returns_to_);
      last_ = *returns_to_;
      forget_return();
      return 0;
    }
    if (!was_counted_ && (word_at(at - 1) & 0xff) == breakpoint &&
        read_user(offsetof(user_regs_struct, rax)) == counter_magic) {
      called();
    } else if (stepping_) {
      stepped_to(at);
    }
    last_ = at;
    return 0;
  }

  void forget_return() {
    if (returns_to_) put_word(*returns_to_, replaced_);
    returns_to_.reset();
  }

  void called() {
    const auto what = static_cast<CounterCall>(read_user(offsetof(user_regs_struct, rdi)));
    executed_at_ = read_user(offsetof(user_regs_struct, rsi));
    stepping_ = what == CounterCall::begin || what == CounterCall::resume;
    was_counted_ = false;
    if (what == CounterCall::begin || what == CounterCall::end) forget_return();
    depth_begins_ = what == CounterCall::begin;
    if (what == CounterCall::end) put_word(executed_at_, executed_);
  }

  void stepped_to(std::uint64_t at) {
    if (was_counted_) ++executed_;  // the one that was just executed
    const bool counted = map_.is_counted(at);
    if (counted != was_counted_) {
      const bool begins = counted && depth_begins_;
      if (begins) leaves_to_ = return_address();
      depth_begins_ = false;
      const bool called = !begins && !is_return(last_);
      if (!counted) put_word(executed_at_, executed_);
      if (called) run_to(return_address());
      if (!counted && !called && at == leaves_to_) stepping_ = false;
      was_counted_ = counted && !called;
      return;
    }
    was_counted_ = counted;
  }

  // On top of the stack at the first instruction of what was called.
  std::uint64_t return_address() const { return word_at(read_user(offsetof(user_regs_struct, rsp))); }

  bool is_return(std::uint64_t address) const {
    std::uint64_t code = word_at(address);
    if ((code & 0xff) == 0xf3 || (code & 0xff) == 0xf2) code >>= 8;  // prefixes
    return (code & 0xff) == 0xc3 || (code & 0xff) == 0xc2;
  }

  void run_to(std::uint64_t address) {
    replaced_ = word_at(address);
    put_word(address, (replaced_ & ~std::uint64_t{0xff}) | breakpoint);
    returns_to_ = address;
  }

  pid_t process_;
  Map map_;
  bool stepping_ = false;
  bool was_counted_ = false;   // the instruction that comes next is the library's
  bool depth_begins_ = false;  // the library has not been entered yet
  std::uint64_t last_ = 0;     // the instruction that was executed last
  std::uint64_t leaves_to_ = 0;
  std::uint64_t executed_ = 0;
  std::uint64_t executed_at_ = 0;
  std::uint64_t replaced_ = 0;
  std::optional<std::uint64_t> returns_to_;
};

// Each step is a switch from the rank to this process and back, which takes half as long on one processor as between
// two.
const char* rank_number() {
  const char* rank = std::getenv("PMI_RANK");
  return rank != nullptr ? rank : std::getenv("PMIX_RANK");
}

// Is this rank among them, "0,2,3"?
bool is_counted(const std::string& ranks) {
  const char* rank = rank_number();
  return rank == nullptr || ("," + ranks + ",").find("," + std::string(rank) + ",") != std::string::npos;
}

// Each step is a switch from the rank to this process and back, which takes half as long on one processor as between
// two.
void stay_on_one_processor() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const char* rank = rank_number();
  int skipped = (rank != nullptr ? std::atoi(rank) : 0) % CPU_COUNT(&allowed);
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed) || skipped-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(0, sizeof one, &one);  // it works without, too
    return;
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string option = "--ranks=";
  const bool some = count > 1 && std::string(words[1]).starts_with(option);
  char** program = words + (some ? 2 : 1);
  if (*program == nullptr) {
    std::fprintf(stderr, "dryfly-count: accepted is [--ranks=A,B...] PROGRAM ARGS...\n");
    return 2;
  }
  if (some && !is_counted(words[1] + option.size())) {
    unsetenv("DRYFLY_SOFTWARE_RECORD");
    execvp(program[0], program);
    refuse(program[0]);
  }
  stay_on_one_processor();
  const pid_t process = fork();
  if (process < 0) refuse("fork");
  if (process == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) refuse("ptrace");
    execvp(program[0], program);
    refuse(program[0]);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int status = Counter(process).run();
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : refused_status;
}
