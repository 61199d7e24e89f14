#include "launch/starter.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/spec/spec.hpp"

namespace dryfly::launch {
namespace {

rlimit raise_descriptor_limit(int ranks) {
  rlimit original{};
  getrlimit(RLIMIT_NOFILE, &original);
  const rlimit raised{original.rlim_max, original.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  // A socket and a pidfd for each rank, a second pidfd where it is a wrapper, and a connection of PMIx.
  const auto needed = static_cast<rlim_t>(ranks) * 4 + 64;
  if (needed > raised.rlim_cur) {
    throw SpecError(std::to_string(ranks) + " ranks need " + std::to_string(needed) +
                    " file descriptors; the hard limit (ulimit -Hn) is " + std::to_string(raised.rlim_cur));
  }
  return original;
}

void search_programs_along(const std::vector<std::string>& environment) {
  for (const std::string& assignment : environment) {
    if (assignment.starts_with("PATH=")) setenv("PATH", assignment.c_str() + std::strlen("PATH="), 1);
  }
}

}  // namespace

Starter::Starter(const Plan& plan, const Options& options, const Signals& signals)
    : plan_(plan),
      options_(options),
      signals_(signals),
      original_limit_(raise_descriptor_limit(plan.size())),
      null_fd_(open("/dev/null", O_RDONLY | O_CLOEXEC)),
      environments_(plan, environ) {
  if (null_fd_ < 0) throw std::system_error(errno, std::generic_category(), "open /dev/null");
  search_programs_along(plan.environment);
}

Starter::~Starter() { close(null_fd_); }

std::variant<StartedRank, SpawnFailure> Starter::start(int rank, const std::vector<std::string>& pmix) const {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  const bool reads_stdin = rank == plan_.stdin_rank;
  const bool debugged = rank == options_.debug_rank;
  SpawnRequest request;
  if (debugged) request.command = options_.debug_command;
  request.command.insert(request.command.end(), options_.program.begin(), options_.program.end());
  request.environment = environments_.of_rank(rank, sockets[1], pmix);
  request.directory = plan_.directory;
  request.pmi_fd = sockets[1];
  request.stdin_fd = reads_stdin ? STDIN_FILENO : null_fd_;
  // In a group of its own a rank cannot read from a terminal.
  request.own_group = !debugged && !(reads_stdin && isatty(STDIN_FILENO) == 1);
  request.signal_mask = signals_.original_mask;
  request.descriptor_limit = original_limit_;

  const auto result = spawn(request);
  close(sockets[1]);
  if (const auto* failure = std::get_if<SpawnFailure>(&result)) {
    close(sockets[0]);
    return *failure;
  }
  return StartedRank{std::get<Spawned>(result), sockets[0]};
}

std::variant<Spawned, SpawnFailure> Starter::start_starter(const std::string& socket_name) const {
  SpawnRequest request;
  request.command = plan_.starter;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  request.command.insert(request.command.end(), {self, "--shim", socket_name, plan_.starter_rank});
  request.environment = environments_.of_starter();
  request.own_group = isatty(STDIN_FILENO) == 0;
  request.signal_mask = signals_.original_mask;
  request.descriptor_limit = original_limit_;
  return spawn(request);
}

std::vector<std::string> Starter::texts_for_shim(int rank, const std::vector<std::string>& pmix) const {
  std::vector<std::string> texts = environments_.for_shim(rank, pmix);
  for (const std::string& word : options_.program) texts.push_back("arg " + word);
  if (rank != plan_.stdin_rank) texts.emplace_back("stdin /dev/null");
  return texts;
}

}  // namespace dryfly::launch
