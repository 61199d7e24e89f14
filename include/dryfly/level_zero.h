/* Kernels on Level Zero's simulated GPUs (docs/guide/gpu-aurora.md#kernels): an extension of dryfly's own. A driver
 * runs modules of SPIR-V, which nothing here executes; a program that was compiled for the host appends its kernel as a
 * function instead. Looked up as any extension's function, and absent from a real driver:
 *
 *   dryfly_append_host_kernel append = 0;
 *   zeDriverGetExtensionFunctionAddress(driver, DRYFLY_APPEND_HOST_KERNEL, (void**)&append);
 *
 * The kernel is a command of its list as zeCommandListAppendLaunchKernel's is: it begins behind the events that it
 * waits for and what is before it in its list, takes its launch and the work that dryfly_kernel_announce_work of
 * dryfly/work.h says before it is appended, and signals its event. It comes back at once. The function is called once
 * each time that the list is executed, on the host, when its time is over, and calls neither MPI nor Level Zero. Its
 * argument is a copy of the bytes at the append, aligned to 64 bytes, and a new one each time; null where there are
 * none. */
#ifndef DRYFLY_LEVEL_ZERO_H
#define DRYFLY_LEVEL_ZERO_H

#include <stddef.h>
#include <stdint.h>

#define DRYFLY_APPEND_HOST_KERNEL "dryflyCommandListAppendHostKernel"

/* Handles are Level Zero's, and so is what it answers (ze_result_t):
 * ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE of a list for copies alone. */
typedef int (*dryfly_append_host_kernel)(void* list, void (*kernel)(void* argument), const void* argument, size_t bytes,
                                         void* signal, uint32_t wait_count, void** waits);

#endif
