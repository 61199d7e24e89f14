// The resolved spec of a run: one `name value` per line, integers in base units, every default filled in. Python
// writes it, it is stored beside each result, and it is the only thing the core is configured by. It is read through
// the fields of core/spec/fields.hpp, which docs/reference/resolved-spec.md lists.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/spec/field.hpp"

namespace dryfly {

// The user's input cannot be used; what() is the sentence to show.
class SpecError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Spec {
 public:
  // Throws SpecError naming the line.
  static Spec parse(std::string_view text);

  bool has(const Field& field, Indexes indexes = {}) const;
  // All throw SpecError when the field is absent or its value is not accepted.
  std::uint64_t number(const NumberField& field, Indexes indexes = {}) const;
  // For a 32-bit place, which the field's range fits.
  std::uint32_t small(const NumberField& field, Indexes indexes = {}) const;
  // Where another field makes the range narrower.
  std::uint64_t number_between(std::uint64_t least, std::uint64_t most, const NumberField& field,
                               Indexes indexes = {}) const;
  const std::string& text(const TextField& field, Indexes indexes = {}) const;
  // Of a switch that need not be there, and is off then.
  bool is_on(const TextField& field) const { return has(field) && text(field) == "on"; }

 private:
  const std::string& value_of(const std::string& name) const;

  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace dryfly
