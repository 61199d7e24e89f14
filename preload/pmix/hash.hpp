// FNV-1a: the same number for the same bytes in every rank.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::preload {

struct Hash {
  std::uint64_t value = 14695981039346656037U;
  void add(const void* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      value = (value ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211U;
    }
  }
};

}  // namespace dryfly::preload
