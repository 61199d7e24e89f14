#include "launch/pmi.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace dryfly::launch {
namespace {

// Hydra's limits, which clients have been compiled against; a value may have to be longer (PMI_process_mapping).
constexpr std::size_t longest_job_name = 256;
constexpr std::size_t longest_key = 64;
constexpr std::size_t longest_value = 1024;
// No command comes near this: a client beyond it is not speaking PMI.
constexpr std::size_t longest_line = 1 << 20;

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

// As atoi: what cannot be read counts as 0.
int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int number_field(std::string_view line, std::string_view key) { return number(field(line, key)); }

}  // namespace

std::string process_mapping(const std::vector<int>& node_of_rank) {
  struct Run {
    int first_node;
    int nodes;
    int ranks_per_node;
  };
  std::map<int, int> new_number;
  std::vector<Run> runs;
  for (std::size_t rank = 0; rank < node_of_rank.size();) {
    const int given = node_of_rank[rank];
    const std::size_t begin = rank;
    while (rank < node_of_rank.size() && node_of_rank[rank] == given) ++rank;
    const int ranks = static_cast<int>(rank - begin);
    const int node = new_number.try_emplace(given, static_cast<int>(new_number.size())).first->second;
    if (!runs.empty() && runs.back().ranks_per_node == ranks && runs.back().first_node + runs.back().nodes == node) {
      ++runs.back().nodes;
    } else {
      runs.push_back({node, 1, ranks});
    }
  }
  std::string text = "(vector";
  for (const Run& run : runs) {
    text += ",(" + std::to_string(run.first_node) + "," + std::to_string(run.nodes) + "," +
            std::to_string(run.ranks_per_node) + ")";
  }
  return text + ")";
}

PmiServer::PmiServer(std::string job_name, std::vector<int> node_of_rank)
    : job_name_(std::move(job_name)), node_of_rank_(std::move(node_of_rank)), clients_(node_of_rank_.size()) {
  const std::string mapping = process_mapping(node_of_rank_);
  maxes_ = "cmd=maxes rc=0 kvsname_max=" + std::to_string(longest_job_name) +
           " keylen_max=" + std::to_string(longest_key) +
           " vallen_max=" + std::to_string(std::max(longest_value, mapping.size() + 1)) + "\n";
  get_answers_.emplace("PMI_process_mapping", "cmd=get_result rc=0 value=" + mapping + "\n");
}

void PmiServer::receive(int rank, std::string_view bytes) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  while (true) {
    const auto end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    if (client.partial.empty()) {
      handle_line(rank, bytes.substr(0, end));
    } else {
      client.partial += bytes.substr(0, end);
      handle_line(rank, client.partial);
      client.partial.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  client.partial += bytes;
  if (client.partial.size() > longest_line) {
    client.partial.clear();
    answer(rank, "cmd=error rc=-1 msg=line_too_long\n");
  }
}

const std::vector<int>& PmiServer::take_answered() {
  taken_.clear();
  taken_.swap(answered_);
  for (const int rank : taken_) clients_[static_cast<std::size_t>(rank)].in_answered = false;
  return taken_;
}

void PmiServer::answer(int rank, std::string_view text) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  client.outgoing += text;
  if (!client.in_answered) {
    client.in_answered = true;
    answered_.push_back(rank);
  }
}

void PmiServer::handle_line(int rank, std::string_view line) {
  if (clients_[static_cast<std::size_t>(rank)].in_spawn || line.starts_with("mcmd=")) {
    handle_spawn_line(rank, line);
  } else {
    handle_command(rank, field(line, "cmd"), line);
  }
}

void PmiServer::handle_command(int rank, std::string_view name, std::string_view line) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  if (name == "get") {
    const auto found = get_answers_.find(field(line, "key"));
    answer(rank, found != get_answers_.end() ? std::string_view(found->second)
                                             : std::string_view("cmd=get_result rc=1 msg=key_not_found\n"));
  } else if (name == "put") {
    put(rank, line);
  } else if (name == "barrier_in") {
    const auto group = field(line, "group");
    enter_barrier(rank, group.empty() ? "WORLD" : group);
  } else if (name == "init") {
    const bool spoken = number_field(line, "pmi_version") == 1;
    if (spoken) {
      client.phase = Phase::initialised;
      anyone_initialised_ = true;
      begin(rank);
    }
    answer(rank, spoken ? "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n"
                        : "cmd=response_to_init rc=-1 msg=only_PMI_1_is_served\n");
  } else if (name == "finalize") {
    client.phase = Phase::finalised;
    answer(rank, "cmd=finalize_ack rc=0\n");
  } else if (name == "watched") {
    client.watched = true;
  } else if (name == "abort") {
    if (!abort_) abort_ = Abort{rank, number_field(line, "exitcode")};
  } else if (name == "get_maxes") {
    answer(rank, maxes_);
  } else if (name == "get_appnum") {
    answer(rank, "cmd=appnum rc=0 appnum=0\n");
  } else if (name == "get_my_kvsname") {
    answer(rank, "cmd=my_kvsname rc=0 kvsname=" + job_name_ + "\n");
  } else if (name == "get_universe_size") {
    answer(rank, "cmd=universe_size rc=0 size=" + std::to_string(clients_.size()) + "\n");
  } else if (name == "publish_name" || name == "lookup_name" || name == "unpublish_name") {
    handle_service(rank, name, line);
  } else {
    answer(rank, "cmd=" + std::string(name) + "_result rc=-1 msg=not_served\n");
  }
}

void PmiServer::begin(int rank) {
  if (!clients_[static_cast<std::size_t>(rank)].watched && !unwatched_) unwatched_ = rank;
}

void PmiServer::put(int rank, std::string_view line) {
  const auto key = field(line, "key");
  if (key.empty() || key.starts_with("PMI_")) {
    answer(rank, "cmd=put_result rc=-1 msg=key_is_reserved\n");
    return;
  }
  const auto value = field(line, "value");
  get_answers_[std::string(key)] = "cmd=get_result rc=0 value=" + std::string(value) + "\n";
  answer(rank, "cmd=put_result rc=0\n");
}

void PmiServer::handle_service(int rank, std::string_view name, std::string_view line) {
  const auto service = field(line, "service");
  const auto found = services_.find(service);
  const bool known = found != services_.end();
  if (name == "publish_name") {
    if (!known) services_.emplace(service, field(line, "port"));
    answer(rank, known ? "cmd=publish_result rc=1 msg=duplicate_service\n" : "cmd=publish_result rc=0\n");
  } else if (name == "unpublish_name") {
    if (known) services_.erase(found);
    answer(rank, known ? "cmd=unpublish_result rc=0\n" : "cmd=unpublish_result rc=1 msg=service_not_found\n");
  } else {
    answer(rank, known ? "cmd=lookup_result rc=0 port=" + found->second + "\n"
                       : "cmd=lookup_result rc=1 msg=service_not_found\n");
  }
}

// One MPI_Comm_spawn is as many `mcmd=spawn` blocks as it has commands, and has one answer.
void PmiServer::handle_spawn_line(int rank, std::string_view line) {
  Client& client = clients_[static_cast<std::size_t>(rank)];
  client.in_spawn = true;
  if (const auto wanted = field(line, "totspawns"); !wanted.empty()) client.spawns_wanted = number(wanted);
  if (const auto seen = field(line, "spawnssofar"); !seen.empty()) client.spawns_seen = number(seen);
  if (line == "endcmd" && client.spawns_seen >= client.spawns_wanted) {
    client.in_spawn = false;
    answer(rank, "cmd=spawn_result rc=-1 msg=dynamic_processes_are_not_served\n");
  }
}

// A group is WORLD, NODE, or ranks separated by commas, with an optional :TAG.
std::optional<PmiServer::Barrier> PmiServer::make_barrier(std::string_view group) const {
  Barrier barrier;
  const auto colon = group.find(':');
  barrier.answer = "cmd=barrier_out rc=0 tag=" +
                   std::to_string(colon == std::string_view::npos ? 0 : number(group.substr(colon + 1))) + "\n";
  auto members = group.substr(0, colon);
  if (members == "WORLD") {
    for (std::size_t rank = 0; rank < clients_.size(); ++rank) barrier.waits_of_member[static_cast<int>(rank)] = 0;
    return barrier;
  }
  while (!members.empty()) {
    const auto comma = members.find(',');
    int member = -1;
    const auto text = members.substr(0, comma);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), member);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    if (!whole || member < 0 || static_cast<std::size_t>(member) >= clients_.size()) return std::nullopt;
    barrier.waits_of_member[member] = 0;
    members = comma == std::string_view::npos ? std::string_view{} : members.substr(comma + 1);
  }
  return barrier;
}

void PmiServer::enter_barrier(int rank, std::string_view group) {
  // NODE means another set of ranks on each node, so it is replaced by its members.
  std::string members;
  if (group.starts_with("NODE")) {
    for (std::size_t other = 0; other < clients_.size(); ++other) {
      if (node_of_rank_[other] != node_of_rank_[static_cast<std::size_t>(rank)]) continue;
      members += (members.empty() ? "" : ",") + std::to_string(other);
    }
    members += group.substr(4);
    group = members;
  }
  auto found = barriers_.find(group);
  if (found == barriers_.end()) {
    if (auto made = make_barrier(group)) found = barriers_.emplace(group, std::move(*made)).first;
  }
  if (found == barriers_.end() || !found->second.waits_of_member.contains(rank)) {
    answer(rank, "cmd=barrier_out rc=-1 tag=0 msg=bad_group\n");
    return;
  }
  Barrier& barrier = found->second;
  if (++barrier.waits_of_member[rank] == 1) ++barrier.waiting;
  if (barrier.waiting < barrier.waits_of_member.size()) return;
  barrier.waiting = 0;
  for (auto& [member, waits] : barrier.waits_of_member) {
    if (--waits > 0) ++barrier.waiting;
    answer(member, barrier.answer);
  }
}

}  // namespace dryfly::launch
