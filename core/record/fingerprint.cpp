#include "core/record/fingerprint.hpp"

namespace dryfly {

std::string Fingerprint::text() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {first_, second_}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(half >> shift) & 0xf];
  }
  return text;
}

}  // namespace dryfly
