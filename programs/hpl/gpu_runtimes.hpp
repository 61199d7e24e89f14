// The GPU runtimes that a rank may find, a function for each. Null: it is not here, or `error` says why it cannot be
// used.
#pragma once

#include <memory>
#include <string>

#include "gpu.hpp"

namespace dryfly::hpl {

inline constexpr const char* kMemoryGpu = "--memory gpu: ";
inline constexpr const char* kOnlySimulated = "; accepted are the GPUs that dryfly run simulates";
inline constexpr const char* kNoGpu = "--memory gpu: the rank sees no GPU; accepted is one for each rank of a node";

std::unique_ptr<Gpu> open_cuda(std::string* error);
std::unique_ptr<Gpu> open_hip(std::string* error);
std::unique_ptr<Gpu> open_level_zero(std::string* error);

// Of this rank, from 0.
int number_on_node();

}  // namespace dryfly::hpl
