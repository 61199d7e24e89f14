// Numbers of CUDA 12's ABI that its two libraries share, from NVIDIA's public documentation.
#pragma once

#include "gpu/runtime.hpp"

namespace dryfly::gpu::cuda {

enum Code : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  invalid_handle = 400,
  not_ready = 600,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  already_registered = 712,
  not_registered = 713,
  not_supported = 801,
};

inline Code code_of(Result result) {
  switch (result) {
    case Result::done:
      return success;
    case Result::not_ready:
      return not_ready;
    case Result::no_device:
      return no_device;
    case Result::bad_value:
      return invalid_value;
    case Result::bad_handle:
      return invalid_handle;
    case Result::out_of_memory:
      return out_of_memory;
    case Result::already:
      return already_registered;
    case Result::not_registered:
      return not_registered;
  }
  return invalid_value;
}

inline const char* name_of(int code) {
  switch (code) {
    case success:
      return "no error";
    case invalid_value:
      return "invalid argument";
    case out_of_memory:
      return "out of memory";
    case no_device:
      return "no CUDA-capable device is detected";
    case invalid_device:
      return "invalid device ordinal";
    case invalid_context:
      return "invalid device context";
    case invalid_handle:
      return "invalid resource handle";
    case not_ready:
      return "device not ready";
    case peer_access_already_enabled:
      return "peer access is already enabled";
    case peer_access_not_enabled:
      return "peer access has not been enabled";
    case already_registered:
      return "part or all of the requested memory range is already mapped";
    case not_registered:
      return "pointer does not correspond to a registered memory region";
    case not_supported:
      return "operation not supported";
    default:
      return "unrecognized error code";
  }
}

}  // namespace dryfly::gpu::cuda
