// From the CPU to its NIC, and from the NIC to what the CPU can see.
#pragma once

#include "core/unit/unit.hpp"

namespace dryfly {

struct HostLatencies {
  Duration command{};
  Duration completion{};
};

}  // namespace dryfly
