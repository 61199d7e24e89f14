// Errors of CUDA 12 by the names and texts that its libraries give them. The driver does not know all of the runtime's.
#include "gpu/cuda_codes.hpp"

namespace dryfly::gpu::cuda {

namespace {

struct Error {
  int code;
  const char* runtime;
  const char* driver;
  const char* text;
};

constexpr Error errors[] = {
    {12, "cudaErrorInvalidPitchValue", nullptr, "invalid pitch argument"},
};

const Error* find(int code) {
  for (const Error& each : errors) {
    if (each.code == code) return &each;
  }
  return nullptr;
}

}  // namespace

const char* runtime_name(int code) {
  const Error* const found = find(code);
  return found != nullptr ? found->runtime : "unrecognized error code";
}

const char* driver_name(int code) {
  const Error* const found = find(code);
  return found != nullptr ? found->driver : nullptr;
}

const char* text_of(int code) {
  const Error* const found = find(code);
  return found != nullptr ? found->text : nullptr;
}

}  // namespace dryfly::gpu::cuda
