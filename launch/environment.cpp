#include "launch/environment.hpp"

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

}  // namespace

Environments::Environments(const Plan& plan, const char* const* inherited) : plan_(plan) {
  Variables variables;
  for (; *inherited != nullptr; ++inherited) variables[name_of(*inherited)] = *inherited;
  for (const char* name :
       {"PMI_PORT", "PMI_ID", "PMI_HOSTNAME", "PMI_VERSION", "PMI_SUBVERSION", "PMIX_NAMESPACE", "PMIX_RANK"}) {
    variables.erase(name);
  }
  std::erase_if(variables, [](const auto& variable) { return variable.first.starts_with("PMIX_SERVER_URI"); });
  set_all(variables, plan.environment);
  common_ = assignments_of(variables);

  std::map<int, int> ranks_of_node;
  for (const PlannedRank& rank : plan.ranks) ++ranks_of_node[rank.node];
  for (const PlannedRank& rank : plan.ranks) ranks_beside_.push_back(ranks_of_node[rank.node]);
}

std::vector<std::string> Environments::of_rank(int rank, int pmi_fd, const std::vector<std::string>& pmix) const {
  const auto index = static_cast<std::size_t>(rank);
  const PlannedRank& planned = plan_.ranks[index];
  std::vector<std::string> own{
      "DRYFLY_RANK=" + std::to_string(rank),
      "MPI_LOCALNRANKS=" + std::to_string(ranks_beside_[index]),
      "MPI_LOCALRANKID=" + std::to_string(planned.local),
      "PMI_FD=" + std::to_string(pmi_fd),
      "PMI_RANK=" + std::to_string(rank),
      "PMI_SIZE=" + std::to_string(plan_.size()),
      "PMI_SPAWNED=0",
  };
  const auto node = plan_.node_names.find(planned.node);
  if (node != plan_.node_names.end()) own.push_back("DRYFLY_NODE_NAME=" + node->second);
  Variables variables;
  set_all(variables, common_);
  set_all(variables, planned.environment);
  set_all(variables, pmix);
  set_all(variables, own);
  return assignments_of(variables);
}

}  // namespace dryfly::launch
