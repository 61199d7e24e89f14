// The resolved spec of a run: one `name value` per line, integers in base units, every default filled in. Python
// writes it (python/dryfly/spec), it is stored beside each result, and it is the only thing the core is configured
// by. docs/resolved-spec.md lists the names.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

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

  bool has(std::string_view name) const;
  // Both throw SpecError when the name is absent or its value is no integer.
  std::uint64_t number(std::string_view name) const;
  std::uint64_t number_in(std::string_view name, std::uint64_t least, std::uint64_t most) const;
  const std::string& text(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace dryfly
