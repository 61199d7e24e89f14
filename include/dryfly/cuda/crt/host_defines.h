/* The words of NVIDIA's headers that a compiler for the host needs; PyPI's package of the runtime is without them. */
#ifndef DRYFLY_CRT_HOST_DEFINES_H
#define DRYFLY_CRT_HOST_DEFINES_H

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDART_CB
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define __forceinline__ inline __attribute__((always_inline))
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __host__
#define __device__

#endif
