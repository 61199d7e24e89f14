#include "core/spec/spec.hpp"

#include <algorithm>
#include <charconv>

#include "core/unit/check.hpp"

namespace dryfly {

std::string Field::at(Indexes indexes) const {
  std::string found;
  const auto* index = indexes.begin();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] < 'A' || name[i] > 'Z') {
      found += name[i];
    } else {
      DRYFLY_CHECK(index != indexes.end());
      found += std::to_string(*index++);
    }
  }
  DRYFLY_CHECK(index == indexes.end());
  return found;
}

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

bool Spec::has(const Field& field, Indexes indexes) const { return values_.find(field.at(indexes)) != values_.end(); }

const std::string& Spec::value_of(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw SpecError("resolved spec: " + name + " is missing");
  return found->second;
}

std::uint64_t Spec::number_between(std::uint64_t least, std::uint64_t most, const NumberField& field,
                                   Indexes indexes) const {
  const std::string name = field.at(indexes);
  const std::string& value = value_of(name);
  std::uint64_t result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size()) {
    throw SpecError("resolved spec: " + name + " = `" + value + "` is no whole number");
  }
  least = std::max(least, field.least);
  most = std::min(most, field.most);
  if (result < least || result > most) {
    throw SpecError(name + " = " + value + ": accepted are " + std::to_string(least) + " to " + std::to_string(most));
  }
  return result;
}

std::uint64_t Spec::number(const NumberField& field, Indexes indexes) const {
  return number_between(field.least, field.most, field, indexes);
}

std::uint32_t Spec::small(const NumberField& field, Indexes indexes) const {
  DRYFLY_CHECK(field.most <= UINT32_MAX);
  return static_cast<std::uint32_t>(number(field, indexes));
}

const std::string& Spec::text(const TextField& field, Indexes indexes) const {
  const std::string name = field.at(indexes);
  const std::string& value = value_of(name);
  if (field.choices.empty()) return value;
  for (std::string_view rest = field.choices; !rest.empty();) {
    const std::size_t end = rest.find(", ");
    if (rest.substr(0, end) == value) return value;
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 2);
  }
  throw SpecError(name + " = `" + value + "`: accepted are " + std::string(field.choices));
}

}  // namespace dryfly
