#include <charconv>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {

Parameters::Parameters(std::span<const char* const> words) {
  for (const std::string word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) throw SpecError("argument `" + word + "`: accepted is name=value");
    const std::string name = word.substr(0, equals);
    if (!values_.emplace(name, word.substr(equals + 1)).second) throw SpecError("argument " + name + " is given twice");
  }
}

const std::string& Parameters::text(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end()) throw SpecError("argument " + name + " is missing");
  used_[name] = true;
  return found->second;
}

std::uint64_t Parameters::number(const std::string& name, std::uint64_t least, std::uint64_t most) {
  const std::string& words = text(name);
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(words.data(), words.data() + words.size(), value);
  if (error != std::errc{} || stop != words.data() + words.size() || value < least || value > most) {
    throw SpecError(name + " = `" + words + "`: accepted is a whole number from " + std::to_string(least) + " to " +
                    std::to_string(most));
  }
  return value;
}

std::uint64_t Parameters::number_or(const std::string& name, std::uint64_t usual, std::uint64_t least,
                                    std::uint64_t most) {
  return has(name) ? number(name, least, most) : usual;
}

std::array<std::uint64_t, 3> Parameters::three(const std::string& name, std::uint64_t least, std::uint64_t most) {
  const std::string& words = text(name);
  std::array<std::uint64_t, 3> sides{};
  const char* next = words.data();
  const char* const end = next + words.size();
  bool is_right = true;
  for (std::size_t axis = 0; is_right && axis < 3; ++axis) {
    const auto [stop, error] = std::from_chars(next, end, sides[axis]);
    const bool goes_on = stop != end && *stop == 'x';
    is_right =
        error == std::errc{} && sides[axis] >= least && sides[axis] <= most && (axis < 2 ? goes_on : stop == end);
    next = goes_on ? stop + 1 : stop;
  }
  if (!is_right) {
    throw SpecError(name + " = " + words + ": accepted is AxBxC, each from " + std::to_string(least) + " to " +
                    std::to_string(most));
  }
  return sides;
}

void Parameters::check_all_used() const {
  for (const auto& [name, value] : values_) {
    if (!used_.contains(name)) throw SpecError("argument " + name + ": this workload has no such parameter");
  }
}

}  // namespace dryfly::motif
