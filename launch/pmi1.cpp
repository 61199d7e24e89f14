#include "launch/pmi1.hpp"

#include <algorithm>

#include "launch/pmi_number.hpp"

namespace dryfly::launch {
namespace {

// Hydra's limits, which clients have been compiled against; a value may have to be longer (PMI_process_mapping).
constexpr std::size_t longest_job_name = 256;
constexpr std::size_t longest_key = 64;
constexpr std::size_t longest_value = 1024;

// The value of a key in `cmd=NAME KEY=VALUE ...`; empty if it is not there, which no value of the protocol is.
std::string_view field(std::string_view line, std::string_view key) {
  std::size_t at = 0;
  while (at < line.size()) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < line.size() && line[at] != ' ') at += line[at] == '\\' ? 2 : 1;
    const auto token = line.substr(begin, std::min(at, line.size()) - begin);
    if (token.size() > key.size() && token[key.size()] == '=' && token.starts_with(key)) {
      return token.substr(key.size() + 1);
    }
  }
  return {};
}

int number_field(std::string_view line, std::string_view key) { return pmi_number(field(line, key)); }

}  // namespace

Pmi1::Pmi1(PmiJob& job, PmiClients& clients) : job_(job), clients_(clients), spawns_(clients.count()) {
  maxes_ = "cmd=maxes rc=0 kvsname_max=" + std::to_string(longest_job_name) +
           " keylen_max=" + std::to_string(longest_key) +
           " vallen_max=" + std::to_string(std::max(longest_value, job.mapping().size() + 1)) + "\n";
}

void Pmi1::handle_line(int rank, std::string_view line) {
  if (spawns_[static_cast<std::size_t>(rank)].begun || line.starts_with("mcmd=")) {
    handle_spawn_line(rank, line);
  } else {
    handle_command(rank, field(line, "cmd"), line);
  }
}

void Pmi1::handle_command(int rank, std::string_view name, std::string_view line) {
  if (name == "get") {
    get(rank, line);
  } else if (name == "put") {
    const bool allowed = job_.put(field(line, "key"), field(line, "value"));
    clients_.answer(rank, allowed ? "cmd=put_result rc=0\n" : "cmd=put_result rc=-1 msg=key_is_reserved\n");
  } else if (name == "barrier_in") {
    const auto group = field(line, "group");
    enter_barrier(rank, group.empty() ? "WORLD" : group);
  } else if (name == "init") {
    initialise(rank, line);
  } else if (name == "finalize") {
    clients_.finalise(rank);
    clients_.answer(rank, "cmd=finalize_ack rc=0\n");
  } else if (name == "watched") {
    clients_.watched(rank);
  } else if (name == "left") {
    clients_.finalise(rank);
  } else if (name == "abort") {
    clients_.abort(rank, number_field(line, "exitcode"));
  } else if (name == "get_maxes") {
    clients_.answer(rank, maxes_);
  } else if (name == "get_appnum") {
    clients_.answer(rank, "cmd=appnum rc=0 appnum=0\n");
  } else if (name == "get_my_kvsname") {
    clients_.answer(rank, "cmd=my_kvsname rc=0 kvsname=" + job_.name() + "\n");
  } else if (name == "get_universe_size") {
    clients_.answer(rank, "cmd=universe_size rc=0 size=" + std::to_string(job_.size()) + "\n");
  } else if (name == "publish_name" || name == "lookup_name" || name == "unpublish_name") {
    handle_service(rank, name, line);
  } else {
    clients_.answer(rank, "cmd=" + std::string(name) + "_result rc=-1 msg=not_served\n");
  }
}

void Pmi1::get(int rank, std::string_view line) {
  const std::string* const value = job_.find(field(line, "key"));
  if (value == nullptr) return clients_.answer(rank, "cmd=get_result rc=1 msg=key_not_found\n");
  clients_.answer(rank, "cmd=get_result rc=0 value=");
  clients_.answer(rank, *value);
  clients_.answer(rank, "\n");
}

// A client of PMI-2 begins with this line too, and goes on in that version's form.
void Pmi1::initialise(int rank, std::string_view line) {
  const int version = number_field(line, "pmi_version");
  if (version != 1 && version != 2) {
    return clients_.answer(rank, "cmd=response_to_init rc=-1 msg=only_PMI_1_and_2_are_served\n");
  }
  clients_.initialise(rank, version);
  clients_.answer(rank, version == 1 ? "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n"
                                     : "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n");
}

void Pmi1::handle_service(int rank, std::string_view name, std::string_view line) {
  const auto service = field(line, "service");
  if (name == "publish_name") {
    clients_.answer(rank, job_.publish(service, field(line, "port"))
                              ? "cmd=publish_result rc=0\n"
                              : "cmd=publish_result rc=1 msg=duplicate_service\n");
  } else if (name == "unpublish_name") {
    clients_.answer(rank, job_.withdraw(service) ? "cmd=unpublish_result rc=0\n"
                                                 : "cmd=unpublish_result rc=1 msg=service_not_found\n");
  } else {
    const std::string* const port = job_.port_of(service);
    clients_.answer(rank, port != nullptr ? "cmd=lookup_result rc=0 port=" + *port + "\n"
                                          : "cmd=lookup_result rc=1 msg=service_not_found\n");
  }
}

// One MPI_Comm_spawn is as many `mcmd=spawn` blocks as it has commands, and has one answer.
void Pmi1::handle_spawn_line(int rank, std::string_view line) {
  Spawn& spawn = spawns_[static_cast<std::size_t>(rank)];
  spawn.begun = true;
  if (const auto wanted = field(line, "totspawns"); !wanted.empty()) spawn.wanted = pmi_number(wanted);
  if (const auto seen = field(line, "spawnssofar"); !seen.empty()) spawn.seen = pmi_number(seen);
  if (line == "endcmd" && spawn.seen >= spawn.wanted) {
    spawn.begun = false;
    clients_.answer(rank, "cmd=spawn_result rc=-1 msg=dynamic_processes_are_not_served\n");
  }
}

void Pmi1::enter_barrier(int rank, std::string_view group) {
  const auto opened = job_.enter_barrier(rank, group);
  if (!opened) return clients_.answer(rank, "cmd=barrier_out rc=-1 tag=0 msg=bad_group\n");
  if (opened->empty()) return;
  const auto colon = group.find(':');
  const int tag = colon == std::string_view::npos ? 0 : pmi_number(group.substr(colon + 1));
  const std::string answer = "cmd=barrier_out rc=0 tag=" + std::to_string(tag) + "\n";
  for (const int member : *opened) clients_.answer(member, answer);
}

}  // namespace dryfly::launch
