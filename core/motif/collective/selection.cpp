#include "core/motif/collective/selection.hpp"

#include <bit>
#include <charconv>
#include <sstream>

#include "core/motif/collective/shipped_rules.hpp"
#include "core/motif/job/job.hpp"
#include "core/spec/spec.hpp"

namespace dryfly::motif {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream stream{std::string(line.substr(0, line.find('#')))};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::uint64_t number_in(const std::string& word, std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) {
    throw SpecError("`" + word + "`: accepted is a whole number behind the sign");
  }
  return value;
}

}  // namespace

bool Selection::Rule::fits(const Facts& facts) const {
  const auto in = [](const Interval& interval, std::uint64_t value) {
    return value >= interval.least && value <= interval.most;
  };
  const auto is = [](Given given, bool fact) { return given == Given::any || (given == Given::yes) == fact; };
  return in(ranks, facts.ranks) && in(bytes, facts.bytes) && in(total, facts.total) &&
         is(power_of_two, std::has_single_bit(facts.ranks)) && is(few_elements, facts.few_elements) &&
         is(hierarchy, facts.hierarchy) && is(one_node, facts.one_node);
}

void Selection::parse_word(Rule& rule, const std::string& word) {
  const std::size_t sign = word.find_first_of("<>=");
  const std::size_t value = sign == std::string::npos ? sign : word.find_first_not_of("<>=", sign);
  if (value == std::string::npos || sign == 0)
    throw SpecError("`" + word + "`: accepted is NAME=VALUE, NAME<VALUE ...");
  const std::string name = word.substr(0, sign);
  const std::string compared = word.substr(sign, value - sign);
  const std::string text = word.substr(value);
  const auto yes_or_no = [&](Given& given) {
    if (compared != "=" || (text != "yes" && text != "no")) throw SpecError("`" + word + "`: accepted is =yes or =no");
    given = text == "yes" ? Given::yes : Given::no;
  };
  if (name == "hierarchy") return yes_or_no(rule.hierarchy);
  if (name == "one_node") return yes_or_no(rule.one_node);
  if (word == "ranks=pow2") return void(rule.power_of_two = Given::yes);
  if (word == "count<pow2") return void(rule.few_elements = Given::yes);
  if (word == "count>=pow2") return void(rule.few_elements = Given::no);
  const std::uint64_t number = number_in(word, text);
  if (compared == "=") {
    if (name == "fan") return void(rule.choice.fan = static_cast<std::uint32_t>(number));
    if (name == "segment") return void(rule.choice.segment = Bytes{number});
    if (name == "window") return void(rule.choice.window = static_cast<std::uint32_t>(number));
  }
  if (name != "ranks" && name != "bytes" && name != "total") {
    throw SpecError("`" + word +
                    "`: accepted is ranks, bytes, total, count, hierarchy, one_node, fan, segment, window");
  }
  Interval& interval = name == "ranks" ? rule.ranks : name == "bytes" ? rule.bytes : rule.total;
  if (compared[0] == '<' && compared != "<=" && number == 0) throw SpecError("`" + word + "`: nothing is less than 0");
  if (compared == "<") interval.most = std::min(interval.most, number - 1);
  if (compared == "<=" || compared == "=") interval.most = std::min(interval.most, number);
  if (compared == ">=" || compared == "=") interval.least = std::max(interval.least, number);
  if (compared == ">") interval.least = std::max(interval.least, number + 1);
}

Selection::Rule Selection::parse_rule(const std::vector<std::string>& words) {
  if (words.size() < 2) throw SpecError("`" + words[0] + "`: accepted is COLLECTIVE ALGORITHM and conditions");
  Rule rule;
  rule.choice.algorithm = &algorithm_named(collective_named(words[0]), words[1]);
  for (std::size_t word = 2; word < words.size(); ++word) {
    parse_word(rule, words[word]);
    rule.why += (word > 2 ? " " : "") + words[word];
  }
  complete(rule.choice);
  return rule;
}

void Selection::put_before(std::string_view text, const std::string& name, const std::string& by) {
  std::array<std::vector<Rule>, collective_count> found;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string> words = words_of(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (words.empty()) continue;
    try {
      Rule rule = parse_rule(words);
      rule.why = rule.why.empty() ? by : by + ": " + rule.why;
      found[static_cast<std::size_t>(rule.choice.algorithm->what)].push_back(rule);
    } catch (const SpecError& error) {
      throw SpecError(name + ", line " + std::to_string(line_number) + ": " + error.what());
    }
  }
  for (std::size_t collective = 0; collective < collective_count; ++collective) {
    std::vector<Rule>& rules = rules_[collective];
    rules.insert(rules.begin(), found[collective].begin(), found[collective].end());
  }
}

Selection Selection::of_library(const std::string& library) {
  Selection selection;
  if (library == "mpich") {
    selection.put_before(mpich_rules, "data/mpi/collectives-mpich.rules", library);
  } else if (library == "openmpi") {
    selection.put_before(openmpi_rules, "data/mpi/collectives-openmpi.rules", library);
  } else if (library == "rccl") {
    selection.put_before(rccl_rules, "data/mpi/collectives-rccl.rules", library);
  } else if (library == "oneccl") {
    selection.put_before(oneccl_rules, "data/mpi/collectives-oneccl.rules", library);
  } else {
    throw SpecError("library = `" + library + "`: accepted is mpich, openmpi, rccl or oneccl");
  }
  return selection;
}

Choice Selection::choose(Rank& me, const Communicator& ranks, const CollectiveCall& call) const {
  const std::uint32_t size = ranks.size();
  // Ranks that talk through their NICs within a node too are on nodes of their own for the library.
  const Job& job = me.job();
  const std::uint32_t on_a_node = job.costs().near_by_memory ? ranks.on_a_node(job.placement().per_node()) : 1;
  const Facts facts{.ranks = size,
                    .bytes = call.size.count,
                    .total = call.total(size),
                    .few_elements = call.elements() < std::bit_floor(size),
                    .hierarchy = on_a_node > 1 && on_a_node < size,
                    .one_node = on_a_node == size};
  for (const Rule& rule : rules_[static_cast<std::size_t>(call.what)]) {
    const Algorithm& algorithm = *rule.choice.algorithm;
    const bool can = (facts.hierarchy || !algorithm.two_levels) && facts.bytes <= algorithm.bytes_most;
    if (!can || !rule.fits(facts)) continue;
    decide(me, ranks, call, algorithm.name, rule.why);
    return rule.choice;
  }
  throw SpecError("no rule says how " + std::string(name_of(call.what)) + " of " + std::to_string(call.size.count) +
                  " bytes runs on " + std::to_string(size) + " ranks");
}

// All its ranks decide alike: the first one tells.
void Selection::decide(Rank& me, const Communicator& ranks, const CollectiveCall& call, std::string_view algorithm,
                       const std::string& why) const {
  if (ranks.rank(0) == me.id()) decisions_->add(call, ranks.size(), algorithm, why);
}

}  // namespace dryfly::motif
