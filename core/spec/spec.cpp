#include "core/spec/spec.hpp"

#include <charconv>

namespace dryfly {

Spec Spec::parse(std::string_view text) {
  Spec spec;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    const auto space = line.find(' ');
    if (space == std::string_view::npos || space == 0) {
      throw SpecError("resolved spec, line " + std::to_string(line_number) + ": expected `name value`, got `" +
                      std::string(line) + "`");
    }
    const auto [where, fresh] = spec.values_.emplace(line.substr(0, space), line.substr(space + 1));
    if (!fresh) throw SpecError("resolved spec: " + where->first + " is given twice");
  }
  return spec;
}

bool Spec::has(std::string_view name) const { return values_.find(name) != values_.end(); }

const std::string& Spec::text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw SpecError("resolved spec: " + std::string(name) + " is missing");
  return found->second;
}

std::uint64_t Spec::number(std::string_view name) const {
  const auto& value = text(name);
  std::uint64_t result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size()) {
    throw SpecError("resolved spec: " + std::string(name) + " = `" + value + "` is no whole number");
  }
  return result;
}

std::uint64_t Spec::number_in(std::string_view name, std::uint64_t least, std::uint64_t most) const {
  const auto value = number(name);
  if (value < least || value > most) {
    throw SpecError(std::string(name) + " = " + std::to_string(value) + ": accepted are " + std::to_string(least) +
                    " to " + std::to_string(most));
  }
  return value;
}

}  // namespace dryfly
