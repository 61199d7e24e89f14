// Allocation without a C++ runtime: objects of the provider are plain structures that start as zeros.
#pragma once

#include <cstdlib>
#include <type_traits>

namespace dryfly::provider {

template <class T>
T* allocate(std::size_t count = 1) {
  static_assert(std::is_trivially_destructible_v<T>);
  return static_cast<T*>(calloc(count, sizeof(T)));
}

// The object whose first member `fid` is.
template <class T, class Fid>
T* object_of(Fid* fid) {
  return reinterpret_cast<T*>(fid);
}

}  // namespace dryfly::provider
