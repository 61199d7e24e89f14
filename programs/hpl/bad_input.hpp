// What the user has to be told: a program that gets it ends with status 2.
#pragma once

#include <stdexcept>

namespace dryfly::hpl {

// One sentence: which field, its value, what is accepted.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace dryfly::hpl
