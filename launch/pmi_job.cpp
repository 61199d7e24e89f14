#include "launch/pmi_job.hpp"

#include <charconv>
#include <system_error>

namespace dryfly::launch {

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

PmiJob::PmiJob(std::string name, std::vector<int> node_of_rank)
    : name_(std::move(name)), node_of_rank_(std::move(node_of_rank)) {
  values_.emplace("PMI_process_mapping", process_mapping(node_of_rank_));
}

bool PmiJob::put(std::string_view key, std::string_view value) {
  if (key.empty() || key.starts_with("PMI_")) return false;
  values_.insert_or_assign(std::string(key), std::string(value));
  return true;
}

const std::string* PmiJob::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found != values_.end() ? &found->second : nullptr;
}

bool PmiJob::put_on_node(int rank, std::string_view key, std::string_view value) {
  if (key.empty() || key.starts_with("PMI_")) return false;
  of_node_[node_of(rank)].insert_or_assign(std::string(key), std::string(value));
  return true;
}

const std::string* PmiJob::find_on_node(int rank, std::string_view key) const {
  const auto node = of_node_.find(node_of(rank));
  if (node == of_node_.end()) return nullptr;
  const auto found = node->second.find(key);
  return found != node->second.end() ? &found->second : nullptr;
}

bool PmiJob::publish(std::string_view service, std::string_view port) {
  return services_.emplace(service, port).second;
}

bool PmiJob::withdraw(std::string_view service) {
  const auto found = services_.find(service);
  if (found == services_.end()) return false;
  services_.erase(found);
  return true;
}

const std::string* PmiJob::port_of(std::string_view service) const {
  const auto found = services_.find(service);
  return found != services_.end() ? &found->second : nullptr;
}

std::optional<PmiJob::Barrier> PmiJob::make_barrier(std::string_view group) const {
  Barrier barrier;
  auto members = group.substr(0, group.find(':'));
  if (members == "WORLD") {
    for (std::size_t rank = 0; rank < size(); ++rank) barrier.waits_of_member[static_cast<int>(rank)] = 0;
    return barrier;
  }
  while (!members.empty()) {
    const auto comma = members.find(',');
    int member = -1;
    const auto text = members.substr(0, comma);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), member);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    if (!whole || member < 0 || static_cast<std::size_t>(member) >= size()) return std::nullopt;
    barrier.waits_of_member[member] = 0;
    members = comma == std::string_view::npos ? std::string_view{} : members.substr(comma + 1);
  }
  return barrier;
}

std::optional<std::vector<int>> PmiJob::enter_barrier(int rank, std::string_view group) {
  // NODE means another set of ranks on each node, so it is replaced by its members.
  std::string members;
  if (group.starts_with("NODE")) {
    for (int other = 0; other < static_cast<int>(size()); ++other) {
      if (same_node(rank, other)) members += (members.empty() ? "" : ",") + std::to_string(other);
    }
    members += group.substr(4);
    group = members;
  }
  auto found = barriers_.find(group);
  if (found == barriers_.end()) {
    if (auto made = make_barrier(group)) found = barriers_.emplace(group, std::move(*made)).first;
  }
  if (found == barriers_.end() || !found->second.waits_of_member.contains(rank)) return std::nullopt;
  Barrier& barrier = found->second;
  if (++barrier.waits_of_member[rank] == 1) ++barrier.waiting;
  std::vector<int> opened;
  if (barrier.waiting < barrier.waits_of_member.size()) return opened;
  barrier.waiting = 0;
  for (auto& [member, waits] : barrier.waits_of_member) {
    if (--waits > 0) ++barrier.waiting;
    opened.push_back(member);
  }
  return opened;
}

}  // namespace dryfly::launch
