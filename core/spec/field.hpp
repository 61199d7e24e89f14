// A name of the resolved spec and what is accepted of its value. core/spec/fields.hpp has all of them; it is generated,
// so that a range stands in one place only. In a name a capital letter of its own stands for a number that is given
// when the field is read: `faults.N.kind`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace dryfly {

// What stands for the capital letters of a name, in their order.
using Indexes = std::initializer_list<std::uint64_t>;

struct Field {
  std::string_view name;

  std::string at(Indexes indexes) const;
};

struct NumberField : Field {
  std::uint64_t least;
  std::uint64_t most;
};

struct TextField : Field {
  std::string_view choices = {};  // "on, off"; any text where there are none
};

}  // namespace dryfly
