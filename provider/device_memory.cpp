#include "provider/device_memory.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/ep.hpp"
#include "provider/log.hpp"

namespace dryfly::provider {

fi_hmem_iface device_interface() {
  const char* gpus = getenv("DRYFLY_GPU");
  if (gpus == nullptr) return FI_HMEM_SYSTEM;
  if (strstr(gpus, "runtime=level-zero") != nullptr) return FI_HMEM_ZE;
  return strstr(gpus, "runtime=hip") != nullptr ? FI_HMEM_ROCR : FI_HMEM_CUDA;
}

bool knows_devices(const Environment& environment) {
  const fi_hmem_iface found = device_interface();
  return found != FI_HMEM_SYSTEM && (environment.device_memory.interfaces >> found & 1) != 0;
}

bool has_gdrcopy(const Environment& environment) {
  return environment.device_memory.gdrcopy && dryfly_gpu_has_host_access != nullptr &&
         dryfly_gpu_has_host_access() != 0;
}

bool maps_for_processor(const Environment& environment) {
  if (environment.device_memory.unregistered || dryfly_gpu_has_host_access == nullptr) return false;
  return device_interface() == FI_HMEM_CUDA ? has_gdrcopy(environment) : dryfly_gpu_has_host_access() != 0;
}

void warn_of_device_memory(const Session& session, int gpu) {
  static bool warned = false;
  if (warned) return;
  warned = true;
  if (!knows_devices(session.state().environment)) {
    fprintf(
        stderr,
        "dryfly: rank %u gave memory of GPU %d to libfabric, and FI_HMEM=%s leaves its runtime out; its messages are "
        "right here, and on the machine such a buffer cannot be mapped (docs/reference/provider-settings.md)\n",
        session.channel().rank(), gpu, getenv("FI_HMEM"));
    return;
  }
  // Of a library that `dryfly run` knows not to take such memory the wrappers of MPI tell, which know the call.
  if (getenv("DRYFLY_GPU_UNAWARE") != nullptr) return;
  fprintf(stderr,
          "dryfly: rank %u gave memory of GPU %d to an MPI library that knows nothing of GPUs; its messages are right "
          "here, and on the machine the job hangs or ends with a segmentation fault (which MPI knows of them: "
          "docs/guide/gpu.md)\n",
          session.channel().rank(), gpu);
}

void warn_of_range(const Session& session, const void* buffer, std::size_t bytes) {
  static bool warned = false;
  if (warned) return;
  warned = true;
  const char* const what =
      dryfly_gpu_of(buffer) >= 0 ? "which end behind their allocation" : "which no allocation holds";
  fprintf(
      stderr,
      "dryfly: rank %u has a NIC move %zu bytes at %p of a GPU's memory, %s; here they are moved, and on the machine "
      "such a buffer cannot be mapped, and MPI ends the job\n",
      session.channel().rank(), bytes, buffer, what);
}

bool refuses(const Endpoint& endpoint, const void* buffer) {
  const Domain& domain = *endpoint.domain;
  if (!endpoint.calls_no_runtime || !domain.knows_gpus || domain.maps_gpus || gpu_of(buffer) == 0) return false;
  log("Required dev registration copy failed: memory of GPUs is not mapped for the processor here");
  return true;
}

DeviceCopy way_to_device(const Environment& environment, const Endpoint& endpoint, std::size_t bytes) {
  const bool is_short = endpoint.domain->maps_gpus && bytes <= environment.device_memory.processor_copies_max;
  return endpoint.calls_no_runtime || is_short ? DeviceCopy::by_processor : DeviceCopy::by_runtime;
}

void copy_from_device(const Session& session, const Endpoint& endpoint, const void* buffer, std::size_t bytes) {
  // libfabric's shm hands a device's memory over.
  if (!endpoint.domain->has_nics() || dryfly_gpu_copied_by_runtime == nullptr) return;
  const Environment& environment = session.state().environment;
  const bool maps = endpoint.domain->knows_gpus && !environment.device_memory.fork_safe;
  check_mapping(session, *endpoint.domain, maps && gpu_of(buffer) != 0);
  if (maps && way_to_device(environment, endpoint, bytes) == DeviceCopy::by_processor) {
    dryfly_gpu_copied_by_processor(buffer, bytes, 0);
  } else {
    dryfly_gpu_copied_by_runtime(buffer, bytes, 0, 1);
  }
}

void name_device_buffer(const Endpoint& endpoint, const void* buffer, wire::Command& command) {
  command.gpu = gpu_of(buffer);
  const bool copied = command.gpu != 0 && endpoint.domain->has_nics() && endpoint.domain->knows_gpus;
  if (copied) command.flags |= wire::command_flag::to_device;
}

void copy_to_device(const Environment& environment, DeviceCopy way, const void* buffer, std::size_t bytes) {
  if (way == DeviceCopy::none || dryfly_gpu_copied_by_runtime == nullptr) return;
  if (way == DeviceCopy::by_processor) {
    dryfly_gpu_copied_by_processor(buffer, bytes, 1);
  } else {
    dryfly_gpu_copied_by_runtime(buffer, bytes, 1, environment.device_memory.unknown_buffers ? 1 : 0);
  }
}

}  // namespace dryfly::provider
