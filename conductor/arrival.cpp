// Who comes and goes: the greeting of a process that becomes a rank, and the end of one.
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "conductor/conductor.hpp"
#include "core/spec/fields.hpp"

namespace dryfly {

namespace {

// Whether this process may reach the memory of that one: address 0 is never there, so the attempt fails either way,
// and how it fails tells.
bool may_reach_memory_of(std::uint32_t pid) {
  char byte = 0;
  const iovec here{&byte, 1};
  const iovec there{nullptr, 1};
  return process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0) >= 0 || errno == EFAULT;
}

}  // namespace

void Conductor::serve_visits() {
  for (const Visit& visit : door_.take_visits()) {
    if (visit.kind == Visit::Kind::hello) {
      admit(visit);
    } else {
      process_ended(visit.rank, visit.pid);
    }
  }
}

void Conductor::admit(const Visit& visit) {
  const wire::Hello& hello = visit.hello;
  wire::Welcome welcome{};
  welcome.magic = wire::segment_magic;
  welcome.version = wire::version;
  welcome.segment_bytes = segment_.bytes();
  welcome.rank_count = segment_.rank_count();
  const auto refuse = [&](const std::string& reason) {
    std::strncpy(welcome.reason, reason.c_str(), sizeof welcome.reason - 1);
    door_.welcome(visit.socket, welcome, segment_.descriptor());
  };
  if (hello.version != wire::version) return refuse("the provider is of another version of dryfly");
  if (served() != (hello.rank == wire::any_rank))
    return refuse("a served fabric has no ranks, and a run has only these");
  if (served() && !spec_.has(fields::run_node_name, {hello.node})) {
    return refuse("node " + std::to_string(hello.node) + " is none of the nodes that this fabric serves");
  }
  if (!served() && hello.rank >= ranks_.size()) {
    return refuse("the run has " + std::to_string(ranks_.size()) + " ranks, numbered from 0");
  }
  Rank* const seat = served() ? seat_on(NodeId{hello.node}) : &ranks_[hello.rank];
  if (seat == nullptr)
    return refuse("the fabric has room for " + std::to_string(ranks_.size()) + " processes, all taken");
  Rank& rank = *seat;
  if (served()) {
    prepare_seat(rank);
  } else if (rank.state != RankState::absent) {
    return refuse("process " + std::to_string(rank.process.pid) + " is this rank already");
  }
  if (!may_reach_memory_of(hello.pid)) segment_.header().cross_memory_allowed = 0;
  rank.process.pid = hello.pid;
  rank.process.libmpi = hello.libmpi_path;
  rank.process.libfabric = hello.libfabric_path;
  rank.process.program = hello.program_path;
  rank.process.line = visit.socket;
  set_state(rank, served() ? RankState::away : RankState::starting, never.ps);

  welcome.accepted = 1;
  welcome.rank = rank.id.value;
  welcome.node = rank.node.value;
  welcome.nics_per_node = topology_.nics_per_node(rank.node);
  welcome.nic_index = rank.nic_index;
  for (const Rank& other : ranks_) {
    if (other.node != rank.node || (served() && other.process.tenancy == 0)) continue;
    if (other.id < rank.id) ++welcome.rank_on_node;
    ++welcome.ranks_on_node;
  }
  const std::string name = spec_.text(fields::run_node_name, {rank.node.value});
  std::strncpy(welcome.node_name, name.c_str(), sizeof welcome.node_name - 1);
  door_.welcome(visit.socket, welcome, segment_.descriptor());
  door_.watch(rank.id.value, hello.pid);
  const std::string line = "attached " + std::to_string(rank.id.value) + " " + std::to_string(hello.pid);
  status_.say(line);
  attach_line_.say(line);
  if (served()) status_.say("joined " + line.substr(line.find(' ') + 1) + " " + name);
}

// It holds virtual time no longer. A job is ended by the command that has started us; from a served fabric the process
// is let go, and ends itself.
void Conductor::damaged(RankId id, const char* reason) {
  Rank& rank = ranks_[id.value];
  if (rank.process.cut_off) return;
  rank.process.cut_off = true;
  if (rank.state != RankState::gone) set_state(rank, RankState::away, never.ps);
  batons_.forget(rank);
  const std::string who = std::to_string(id.value) + " " + std::to_string(rank.process.pid);
  status_.say("damaged " + who + " " + reason);
  if (served()) {
    shutdown(rank.process.line, SHUT_RDWR);
  } else {
    broken_ = true;
  }
}

void Conductor::process_ended(std::uint32_t index, std::uint32_t pid) {
  Rank& rank = ranks_[index];
  if (rank.process.pid != pid) return;
  if (served()) return seat_ended(rank);
  const bool early = !ended_;
  set_state(rank, RankState::gone, never.ps);
  flush_waiters(rank);
  batons_.forget(rank);
  if (early) broken_ = true;  // the launcher ends the job and says why
}

}  // namespace dryfly
