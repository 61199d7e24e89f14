#include "launch/environment.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace dryfly::launch {
namespace {

using Variables = std::map<std::string_view, std::string_view>;  // name to NAME=VALUE

std::string_view name_of(std::string_view assignment) { return assignment.substr(0, assignment.find('=')); }

void set_all(Variables& variables, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) variables[name_of(assignment)] = assignment;
}

std::vector<std::string> assignments_of(const Variables& variables) {
  std::vector<std::string> result;
  result.reserve(variables.size());
  for (const auto& [name, assignment] : variables) result.emplace_back(assignment);
  return result;
}

// What MPI libraries look for their server by.
bool leads_to_a_server(std::string_view name) {
  constexpr std::array names{"PMI_PORT",       "PMI_ID",         "PMI_HOSTNAME", "PMI_VERSION",
                             "PMI_SUBVERSION", "PMIX_NAMESPACE", "PMIX_RANK"};
  return std::ranges::find(names, name) != names.end() || name.starts_with("PMIX_SERVER_URI");
}

// What scripts and programs look for their rank by. A batch script has such numbers too, of its own one task.
constexpr std::array local_rank_names{"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID",
                                      "SLURM_LOCALID"};
constexpr std::array local_size_names{"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr std::array rank_names{"OMPI_COMM_WORLD_RANK", "PALS_RANKID", "SLURM_PROCID"};
constexpr std::array size_names{"OMPI_COMM_WORLD_SIZE"};

bool numbers_a_rank(std::string_view name) {
  const auto among = [name](const auto& names) { return std::ranges::find(names, name) != names.end(); };
  return among(local_rank_names) || among(local_size_names) || among(rank_names) || among(size_names);
}

}  // namespace

Environments::Environments(const Plan& plan, const char* const* inherited) : plan_(plan) {
  Variables variables;
  for (; *inherited != nullptr; ++inherited) variables[name_of(*inherited)] = *inherited;
  std::erase_if(variables, [](const auto& variable) {
    return leads_to_a_server(variable.first) || numbers_a_rank(variable.first);
  });
  inherited_ = assignments_of(variables);

  std::map<int, int> ranks_of_node;
  for (const PlannedRank& rank : plan.ranks) ++ranks_of_node[rank.node];
  for (const PlannedRank& rank : plan.ranks) ranks_beside_.push_back(ranks_of_node[rank.node]);
}

std::vector<std::string> Environments::dryfly_variables(int rank) const {
  std::vector<std::string> own{"DRYFLY_RANK=" + std::to_string(rank)};
  const auto node = plan_.node_names.find(plan_.ranks[static_cast<std::size_t>(rank)].node);
  if (node != plan_.node_names.end()) own.push_back("DRYFLY_NODE_NAME=" + node->second);
  return own;
}

std::vector<std::string> Environments::numbers(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  std::vector<std::string> result;
  const auto add = [&result](const auto& names, int number) {
    for (const std::string name : names) result.push_back(name + "=" + std::to_string(number));
  };
  add(local_rank_names, plan_.ranks[index].local);
  add(local_size_names, ranks_beside_[index]);
  add(rank_names, rank);
  add(size_names, plan_.size());
  return result;
}

std::vector<std::string> Environments::pmi_variables(int rank) const {
  return {
      "PMI_RANK=" + std::to_string(rank),
      "PMI_SIZE=" + std::to_string(plan_.size()),
      "PMI_SPAWNED=0",
  };
}

std::vector<std::string> Environments::of_rank(int rank, int pmi_fd, const std::vector<std::string>& pmix) const {
  std::vector<std::string> own = pmi_variables(rank);
  own.push_back("PMI_FD=" + std::to_string(pmi_fd));
  const std::vector<std::string> dryfly = dryfly_variables(rank);
  Variables variables;
  set_all(variables, inherited_);
  set_all(variables, plan_.environment);
  set_all(variables, plan_.ranks[static_cast<std::size_t>(rank)].environment);
  set_all(variables, pmix);
  const std::vector<std::string> numbered = numbers(rank);
  set_all(variables, numbered);
  set_all(variables, own);
  set_all(variables, dryfly);
  return assignments_of(variables);
}

std::vector<std::string> Environments::of_starter() const {
  Variables variables;
  set_all(variables, inherited_);
  set_all(variables, plan_.starter_environment);
  return assignments_of(variables);
}

std::vector<std::string> Environments::for_shim(int rank, const std::vector<std::string>& pmix) const {
  // Open MPI's patience while it starts depends on how many ranks there are (preload/clock/sleep_calls.cpp).
  std::vector<std::string> own{"PMI_SIZE=" + std::to_string(plan_.size())};
  if (!plan_.starter_serves_pmi) own = pmi_variables(rank);
  const std::vector<std::string> dryfly = dryfly_variables(rank);
  Variables variables;
  set_all(variables, plan_.environment);
  set_all(variables, plan_.ranks[static_cast<std::size_t>(rank)].environment);
  set_all(variables, pmix);
  set_all(variables, own);
  set_all(variables, dryfly);
  std::vector<std::string> texts;
  if (!plan_.starter_serves_pmi)
    texts = {"unset PMI_PORT", "unset PMI_ID", "unset PMI_HOSTNAME", "unset PMIX_NAMESPACE", "unset PMIX_RANK"};
  for (const std::string& assignment : assignments_of(variables)) texts.push_back("env " + assignment);
  for (const std::string& assignment : numbers(rank)) texts.push_back("default " + assignment);
  return texts;
}

}  // namespace dryfly::launch
