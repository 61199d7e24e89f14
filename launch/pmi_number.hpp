#pragma once

#include <charconv>
#include <string_view>

namespace dryfly::launch {

// As atoi: what cannot be read counts as 0.
inline int pmi_number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace dryfly::launch
