#include "launch/plan.hpp"

#include <charconv>
#include <utility>

#include "core/spec/spec.hpp"

namespace dryfly::launch {
namespace {

// The ranks of one job are bounded only to turn a misread number into a message instead of an allocation.
constexpr int most_ranks = 1 << 20;

class LineReader {
 public:
  LineReader(std::string_view line, int number) : rest_(line), line_(line), number_(number) {}

  std::string_view word() {
    const auto end = rest_.find(' ');
    const auto result = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    return result;
  }

  int number() {
    const auto text = word();
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0) refuse("a whole number is missing");
    return value;
  }

  void expect(std::string_view word_wanted) {
    if (word() != word_wanted) refuse("`" + std::string(word_wanted) + "` is missing");
  }

  std::string assignment() {
    const auto equals = rest_.find('=');
    if (equals == std::string_view::npos || equals == 0) refuse("NAME=VALUE is missing");
    return std::string(std::exchange(rest_, {}));
  }

  std::string remainder() {
    if (rest_.empty()) refuse("a value is missing");
    return std::string(std::exchange(rest_, {}));
  }

  void finish() const {
    if (!rest_.empty()) refuse("`" + std::string(rest_) + "` is too much");
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw SpecError("launch plan, line " + std::to_string(number_) + ", `" + std::string(line_) + "`: " + reason);
  }

 private:
  std::string_view rest_;
  std::string_view line_;
  int number_;
};

PlannedRank& rank_entry(Plan& plan, LineReader& line) {
  const int rank = line.number();
  if (rank >= most_ranks) line.refuse("ranks go up to " + std::to_string(most_ranks - 1));
  if (rank >= plan.size()) plan.ranks.resize(static_cast<std::size_t>(rank) + 1);
  return plan.ranks[static_cast<std::size_t>(rank)];
}

void read_line(Plan& plan, LineReader line) {
  const auto item = line.word();
  if (item == "rank") {
    auto& rank = rank_entry(plan, line);
    if (rank.node >= 0) line.refuse("this rank is given twice");
    line.expect("node");
    rank.node = line.number();
    line.expect("local");
    rank.local = line.number();
  } else if (item == "env") {
    plan.environment.push_back(line.assignment());
  } else if (item == "rankenv") {
    auto& rank = rank_entry(plan, line);
    rank.environment.push_back(line.assignment());
  } else if (item == "cwd") {
    plan.directory = line.remainder();
  } else if (item == "stdin-rank") {
    plan.stdin_rank = line.number();
  } else if (item == "node") {
    const int node = line.number();
    plan.node_names[node] = line.remainder();
  } else if (item == "pmix") {
    plan.pmix_library = line.remainder();
  } else if (item == "pmix-folder") {
    plan.pmix_folder = line.remainder();
  } else if (item == "starter") {
    plan.starter.push_back(line.remainder());
  } else if (item == "starter-rank") {
    plan.starter_rank = line.remainder();
  } else if (item == "starter-env") {
    plan.starter_environment.push_back(line.assignment());
  } else if (item == "starter-pmi") {
    plan.starter_serves_pmi = true;
  } else {
    line.refuse(
        "items are rank, env, rankenv, cwd, stdin-rank, node, pmix, pmix-folder, starter, starter-rank, starter-env "
        "and starter-pmi");
  }
  line.finish();
}

void check_pmix(const Plan& plan) {
  if (plan.pmix_library.empty()) return;
  if (plan.pmix_folder.empty()) throw SpecError("launch plan: `pmix` needs a `pmix-folder`");
  for (const PlannedRank& rank : plan.ranks) {
    if (plan.node_names.contains(rank.node)) continue;
    throw SpecError("launch plan: `pmix` needs a name for node " + std::to_string(rank.node));
  }
}

}  // namespace

Plan parse_plan(std::string_view text) {
  Plan plan;
  for (int number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (!line.empty() && line.front() != '#') read_line(plan, LineReader(line, number));
  }
  if (plan.ranks.empty()) throw SpecError("launch plan: there is no rank");
  for (int rank = 0; rank < plan.size(); ++rank) {
    if (plan.ranks[static_cast<std::size_t>(rank)].node < 0) {
      throw SpecError("launch plan: rank " + std::to_string(rank) + " has no `rank` line");
    }
  }
  if (plan.stdin_rank >= plan.size()) {
    throw SpecError("launch plan: stdin-rank " + std::to_string(plan.stdin_rank) + " is no rank of the job");
  }
  if (!plan.starter.empty() && plan.starter_rank.empty()) {
    throw SpecError("launch plan: `starter` needs a `starter-rank`");
  }
  check_pmix(plan);
  return plan;
}

}  // namespace dryfly::launch
