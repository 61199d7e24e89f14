// hipError_t: numbers, names and texts from AMD's public documentation of HIP, for the codes that gpu/hip.cpp answers
// and those that programs ask the text of.
#pragma once

#include "gpu/runtime.hpp"

namespace dryfly::gpu::hip {

enum Code : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  invalid_configuration = 9,
  invalid_pitch = 12,
  invalid_device_pointer = 17,
  invalid_memcpy_direction = 21,
  invalid_function = 98,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  already_registered = 712,
  not_registered = 713,
  not_permitted = 800,
  not_supported = 801,
  unknown = 999,
};

struct Words {
  int code;
  const char* name;
  const char* text;
};

inline constexpr Words words[] = {
    {success, "hipSuccess", "no error"},
    {invalid_value, "hipErrorInvalidValue", "invalid argument"},
    {out_of_memory, "hipErrorOutOfMemory", "out of memory"},
    {invalid_pitch, "hipErrorInvalidPitchValue", "invalid pitch argument"},
    {3, "hipErrorNotInitialized", "initialization error"},
    {invalid_device_pointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {invalid_memcpy_direction, "hipErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {invalid_configuration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {invalid_function, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {no_device, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {invalid_device, "hipErrorInvalidDevice", "invalid device ordinal"},
    {invalid_context, "hipErrorInvalidContext", "invalid device context"},
    {209, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {invalid_handle, "hipErrorInvalidHandle", "invalid resource handle"},
    {not_found, "hipErrorNotFound", "named symbol not found"},
    {not_ready, "hipErrorNotReady", "device not ready"},
    {700, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {peer_access_already_enabled, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {peer_access_not_enabled, "hipErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {already_registered, "hipErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {not_registered, "hipErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"},
    {719, "hipErrorLaunchFailure", "unspecified launch failure"},
    {not_permitted, "hipErrorNotPermitted", "operation not permitted"},
    {not_supported, "hipErrorNotSupported", "operation not supported"},
    {unknown, "hipErrorUnknown", "unknown error"},
};

inline const Words& words_of(int code) {
  for (const Words& each : words) {
    if (each.code == code) return each;
  }
  return words[sizeof words / sizeof *words - 1];
}

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
  return unknown;
}

}  // namespace dryfly::gpu::hip
