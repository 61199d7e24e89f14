// Numbers of CUDA 12's ABI that its two libraries share, from NVIDIA's public documentation.
#pragma once

#include "gpu/runtime.hpp"

namespace dryfly::gpu::cuda {

enum Code : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  invalid_configuration = 9,
  invalid_pitch = 12,
  invalid_direction = 21,
  invalid_function = 98,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  peer_access_unsupported = 217,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  already_registered = 712,
  not_registered = 713,
  not_permitted = 800,
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
    case Result::not_permitted:
      return not_permitted;
    case Result::no_kernel:
      return invalid_function;
    case Result::bad_shape:
      return invalid_configuration;
    case Result::own_handle:
      return invalid_context;
  }
  return invalid_value;
}

// Null, for runtime_name "unrecognized error code", where there is no such error.
const char* runtime_name(int code);
const char* driver_name(int code);
const char* text_of(int code);

}  // namespace dryfly::gpu::cuda
