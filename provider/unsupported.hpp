// Fills an entry of an operations table whose call the provider does not have: whatever its signature, it answers
// -FI_ENOSYS.
#pragma once

#include <rdma/fi_errno.h>

namespace dryfly::provider {

struct Unsupported {
  template <class Result, class... Arguments>
  using Call = Result (*)(Arguments...);

  template <class Result, class... Arguments>
  constexpr operator Call<Result, Arguments...>() const {
    return [](Arguments...) -> Result { return -FI_ENOSYS; };
  }
};

inline constexpr Unsupported unsupported;

}  // namespace dryfly::provider
