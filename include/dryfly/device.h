/* What `dryfly nvcc` and `dryfly hipcc` include before a program's first line: the words of CUDA C++, for the host.
 * What they rewrite by themselves is in python/dryfly/apps/device_code.py. C++11, and C++14 where a template is
 * launched. */
#ifndef DRYFLY_DEVICE_H
#define DRYFLY_DEVICE_H

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

/* The variables of a kernel are below; the runtime's own header of them is left out. */
#define __DEVICE_LAUNCH_PARAMETERS_H__
#ifdef DRYFLY_HIP
#include <hip/hip_runtime.h>
#define DRYFLY_RUNTIME(name) hip##name
#else
#include <cuda_runtime.h>
#define DRYFLY_RUNTIME(name) cuda##name
#endif

#undef __host__
#undef __device__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#undef __align__
#undef __grid_constant__
#undef __global__
#undef __shared__
#undef __managed__
#undef __noinline__
#define __host__
#define __device__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__
#ifdef DRYFLY_HIP
#define __HIPCC__ 1
#undef hipLaunchKernelGGL
#undef HIP_DYNAMIC_SHARED
#define HIP_DYNAMIC_SHARED(element, name) extern __shared__ element name[];
#undef HIP_KERNEL_NAME
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
  kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
#else
#define __CUDACC__ 1
#define __NVCC__ 1
#endif

/* Of gpu/kernels.hpp. */
extern "C" {
void dryfly_kernel_register(const void* function, void (*invoke)(const void*, void**), const std::size_t* sizes,
                            unsigned count);
void dryfly_kernel_synchronize();
int dryfly_kernel_vote(int predicate, int* voters);
void* dryfly_kernel_shared();
extern __thread uint3 dryfly_thread_index;
extern __thread uint3 dryfly_block_index;
extern __thread uint3 dryfly_block_shape;
extern __thread uint3 dryfly_grid_shape;
}

#define threadIdx dryfly_thread_index
#define blockIdx dryfly_block_index
#define blockDim (static_cast<const dim3&>(dim3(dryfly_block_shape)))
#define gridDim (static_cast<const dim3&>(dim3(dryfly_grid_shape)))

namespace dryfly_device {

template <std::size_t... Indices>
struct Sequence {};
template <std::size_t Count, std::size_t... Indices>
struct UpTo : UpTo<Count - 1, Count - 1, Indices...> {};
template <std::size_t... Indices>
struct UpTo<0, Indices...> {
  using Type = Sequence<Indices...>;
};

template <class... Parameters>
struct Kernel {
  using Function = void(Parameters...);

  template <std::size_t... Indices>
  static void call(Function* function, void** arguments, Sequence<Indices...>) {
    (void)arguments;
    function(*static_cast<typename std::remove_reference<Parameters>::type*>(arguments[Indices])...);
  }
  static void invoke(const void* function, void** arguments) {
    call(reinterpret_cast<Function*>(const_cast<void*>(function)), arguments,
         typename UpTo<sizeof...(Parameters)>::Type());
  }
  static void add(Function* function) {
    static const std::size_t sizes[sizeof...(Parameters) + 1] = {sizeof(Parameters)..., 0};
    dryfly_kernel_register(reinterpret_cast<const void*>(function), invoke, sizes, sizeof...(Parameters));
  }
};

struct Registered {
  template <class... Parameters>
  explicit Registered(void (*function)(Parameters...)) {
    Kernel<Parameters...>::add(function);
  }
};

inline void* shared_memory() { return dryfly_kernel_shared(); }

using Stream = DRYFLY_RUNTIME(Stream_t);

/* What stands between <<< and >>>. */
struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  Stream stream;

  template <class... Parameters>
  void start(void (*function)(Parameters...), Parameters... values) const {
    void* arguments[sizeof...(Parameters) + 1] = {const_cast<void*>(static_cast<const volatile void*>(&values))...,
                                                  nullptr};
    Kernel<Parameters...>::add(function);
    (void)DRYFLY_RUNTIME(LaunchKernel)(reinterpret_cast<const void*>(function), grid, block, arguments, shared_bytes,
                                       stream);
  }
};

template <class... Parameters>
struct Started {
  Configuration configuration;
  void (*function)(Parameters...);

  void operator()(Parameters... values) const { configuration.start<Parameters...>(function, values...); }
};

/* Of a template, whose parameters the arguments say. */
template <class Body>
struct Deduced {
  Configuration configuration;
  Body body;

  template <class... Values>
  void operator()(Values... values) const {
    configuration.start<Values...>(static_cast<void (*)(Values...)>(body), values...);
  }
};

class Launch {
 public:
  Launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0, Stream stream = nullptr)
      : configuration_{grid, block, shared_bytes, stream} {}

  template <class... Parameters>
  Started<Parameters...> of(void (*function)(Parameters...)) const {
    return {configuration_, function};
  }
  template <class Body>
  Deduced<Body> with(Body body) const {
    return {configuration_, body};
  }

 private:
  Configuration configuration_;
};

template <class Value, class Change>
inline Value changed(Value* at, Change change) {
  Value before, after;
  __atomic_load(at, &before, __ATOMIC_RELAXED);
  do {
    after = change(before);
  } while (!__atomic_compare_exchange(at, &before, &after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return before;
}

template <class Value>
struct Same {
  using Type = Value;
};
template <class Value>
using Plain = typename Same<Value>::Type;

}  // namespace dryfly_device

/* By the kernel's own type, so that an instance of a template is known as well. */
template <class... Parameters>
inline DRYFLY_RUNTIME(Error_t)
    DRYFLY_RUNTIME(LaunchKernel)(void (*function)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                 std::size_t shared_bytes = 0, dryfly_device::Stream stream = nullptr) {
  dryfly_device::Kernel<Parameters...>::add(function);
  return DRYFLY_RUNTIME(LaunchKernel)(reinterpret_cast<const void*>(function), grid, block, arguments, shared_bytes,
                                      stream);
}

inline void __syncthreads() { dryfly_kernel_synchronize(); }
inline int __syncthreads_count(int predicate) {
  int voters = 0;
  return dryfly_kernel_vote(predicate, &voters);
}
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) {
  int voters = 0;
  return dryfly_kernel_vote(predicate, &voters) == voters;
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }

#define DRYFLY_ATOMIC(name, expression)                                                               \
  template <class Value>                                                                              \
  inline Value name(Value* at, dryfly_device::Plain<Value> value) {                                   \
    return dryfly_device::changed(at, [value](Value old) { return static_cast<Value>(expression); }); \
  }                                                                                                   \
  template <class Value>                                                                              \
  inline Value name##_block(Value* at, dryfly_device::Plain<Value> value) {                           \
    return name(at, value);                                                                           \
  }                                                                                                   \
  template <class Value>                                                                              \
  inline Value name##_system(Value* at, dryfly_device::Plain<Value> value) {                          \
    return name(at, value);                                                                           \
  }
DRYFLY_ATOMIC(atomicAdd, old + value)
DRYFLY_ATOMIC(atomicSub, old - value)
DRYFLY_ATOMIC(atomicMin, value < old ? value : old)
DRYFLY_ATOMIC(atomicMax, old < value ? value : old)
DRYFLY_ATOMIC(atomicAnd, old& value)
DRYFLY_ATOMIC(atomicOr, old | value)
DRYFLY_ATOMIC(atomicXor, old ^ value)
DRYFLY_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
DRYFLY_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
DRYFLY_ATOMIC(atomicExch, ((void)old, value))
#undef DRYFLY_ATOMIC
template <class Value>
inline Value atomicCAS(Value* at, dryfly_device::Plain<Value> wanted, dryfly_device::Plain<Value> value) {
  return dryfly_device::changed(at, [wanted, value](Value old) { return old == wanted ? value : old; });
}

template <class One, class Other>
inline constexpr typename std::enable_if<std::is_arithmetic<One>::value && std::is_arithmetic<Other>::value,
                                         typename std::common_type<One, Other>::type>::type
min(One one, Other other) {
  using Common = typename std::common_type<One, Other>::type;
  return static_cast<Common>(other) < static_cast<Common>(one) ? static_cast<Common>(other) : static_cast<Common>(one);
}
template <class One, class Other>
inline constexpr typename std::enable_if<std::is_arithmetic<One>::value && std::is_arithmetic<Other>::value,
                                         typename std::common_type<One, Other>::type>::type
max(One one, Other other) {
  using Common = typename std::common_type<One, Other>::type;
  return static_cast<Common>(one) < static_cast<Common>(other) ? static_cast<Common>(other) : static_cast<Common>(one);
}

inline float rsqrtf(float value) { return 1 / std::sqrt(value); }
inline double rsqrt(double value) { return 1 / std::sqrt(value); }
inline float __fdividef(float one, float other) { return one / other; }
template <class Value>
inline Value __ldg(const Value* at) {
  return *at;
}
inline int __mul24(int one, int other) { return one * other; }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(static_cast<unsigned>(value)); }
inline int __clzll(long long value) {
  return value == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(value));
}
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __ffsll(long long value) { return __builtin_ffsll(value); }
#define __expf(value) expf(value)
#define __logf(value) logf(value)
#define __sinf(value) sinf(value)
#define __cosf(value) cosf(value)
#define __powf(base, power) powf(base, power)

#endif
