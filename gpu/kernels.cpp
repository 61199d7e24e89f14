#include "gpu/kernels.hpp"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/block.hpp"
#include "gpu/runtime.hpp"
#include "gpu/streams.hpp"

namespace dryfly::gpu {

namespace {

constexpr std::size_t argument_alignment = 64;  // of the strictest type that programs pass

struct Kernel {
  const void* function;
  Invoke* invoke;
  Kernel* next;  // of those whose addresses come together in the table
  unsigned count;
  std::size_t sizes[1];  // of its arguments, `count` of them
};

struct Launch {
  const void* function;
  Invoke* invoke;
  Shape grid;
  Shape block;
  void** arguments;  // behind it, and behind them their values
};

constexpr std::size_t table_length = 4096;
Kernel* table[table_length];
pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

Kernel*& head_of(const void* function) {
  constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;
  return table[(reinterpret_cast<std::uint64_t>(function) * spread) >> 52];
}

Kernel* find(const void* function) {
  pthread_mutex_lock(&table_lock);
  Kernel* found = head_of(function);
  while (found != nullptr && found->function != function) found = found->next;
  pthread_mutex_unlock(&table_lock);
  return found;
}

std::size_t padded(std::size_t bytes) { return (bytes + argument_alignment - 1) & ~(argument_alignment - 1); }

// Null: there is no memory for it.
Launch* made(const Kernel& kernel, Shape grid, Shape block, void** arguments) {
  const std::size_t head = padded(sizeof(Launch) + kernel.count * sizeof(void*));
  std::size_t bytes = head;
  for (unsigned i = 0; i < kernel.count; ++i) bytes += padded(kernel.sizes[i]);
  void* const room = aligned_alloc(argument_alignment, bytes);
  if (room == nullptr) return nullptr;
  auto* const launch = static_cast<Launch*>(room);
  *launch = {kernel.function, kernel.invoke, grid, block, reinterpret_cast<void**>(launch + 1)};
  char* at = static_cast<char*>(room) + head;
  for (unsigned i = 0; i < kernel.count; ++i) {
    launch->arguments[i] = at;
    memcpy(at, arguments[i], kernel.sizes[i]);
    at += padded(kernel.sizes[i]);
  }
  return launch;
}

bool is_possible(Shape grid, Shape block) {
  constexpr unsigned grid_most = 0x7fffffff, others_most = 65535, depth_most = 64;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) return false;
  if (grid.x > grid_most || grid.y > others_most || grid.z > others_most) return false;
  return block.x <= threads_max && block.y <= threads_max && block.z <= depth_most &&
         std::uint64_t{block.x} * block.y * block.z <= threads_max;
}

// What was announced of the next kernel: the longer of its computing and of what it reads and writes, as
// preload/clock/work.cpp has it for ranks.
struct Announced {
  std::uint64_t operations[3];
  std::uint64_t bytes;

  // On so many devices together.
  std::uint64_t ps(const Settings& settings, int devices) const {
    const auto many = static_cast<std::uint64_t>(devices);
    std::uint64_t computing = 0;
    for (int i = 0; i < 3; ++i) computing += time_ps(operations[i], many * settings.operations_per_s[i]);
    const std::uint64_t moving = time_ps(bytes, many * settings.memory_bytes_per_s);
    return computing > moving ? computing : moving;
  }
};
thread_local Announced announced;

void say_what_is_no_kernel() {
  static bool said = false;
  if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  fputs(
      "dryfly: a kernel was launched that is not compiled for this computer, and is not run: compile its source by "
      "dryfly nvcc or dryfly hipcc\n",
      stderr);
}

void run(void* argument) {
  auto* const launch = static_cast<Launch*>(argument);
  run_blocks(launch->grid, launch->block, {launch->invoke, launch->function, launch->arguments});
  free(launch);
}

}  // namespace

std::uint64_t take_announced_ps(int devices) {
  const Announced work = announced;
  announced = {};
  return work.ps(Runtime::get().settings(), devices);
}

bool is_kernel(const void* function) { return find(function) != nullptr; }

Result launch(const void* function, Shape grid, Shape block, void** arguments, std::size_t shared_bytes,
              Stream* stream) {
  const std::uint64_t work_ps = take_announced_ps(1);
  const Settings& settings = Runtime::get().settings();
  if (settings.devices == 0) return Result::no_device;
  const Kernel* const kernel = find(function);
  if (kernel == nullptr) {
    say_what_is_no_kernel();
    return Result::no_kernel;
  }
  if (!is_possible(grid, block)) return Result::bad_shape;
  if (shared_bytes > shared_most || (arguments == nullptr && kernel->count != 0)) return Result::bad_value;
  Launch* const launch = made(*kernel, grid, block, arguments);
  if (launch == nullptr) return Result::out_of_memory;
  const Start start{.latency_ps = 0, .step_ps = settings.kernel_ps + work_ps};
  const Result result = Streams::get().call(stream, run, launch, &start);
  if (result != Result::done) free(launch);
  return result;
}

struct HostKernel {
  void (*function)(void*);
  std::uint64_t takes_ps;
  std::size_t argument_bytes;  // behind it
};

namespace {

constexpr std::size_t host_kernel_head = argument_alignment;
static_assert(sizeof(HostKernel) <= host_kernel_head);

// With room for its argument. Null: there is no memory for it.
void* room_for_host_kernel(std::size_t argument_bytes) {
  const std::size_t bytes = host_kernel_head + padded(argument_bytes);
  return bytes > argument_bytes ? aligned_alloc(argument_alignment, bytes) : nullptr;
}

void run_on_host(void* execution) {
  const auto& kernel = *static_cast<const HostKernel*>(execution);
  kernel.function(kernel.argument_bytes != 0 ? static_cast<char*>(execution) + host_kernel_head : nullptr);
  free(execution);
}

}  // namespace

HostKernel* make_host_kernel(void (*function)(void*), const void* argument, std::size_t bytes, std::uint64_t work_ps) {
  void* const room = room_for_host_kernel(bytes);
  if (room == nullptr) return nullptr;
  auto* const kernel = static_cast<HostKernel*>(room);
  *kernel = {function, Runtime::get().settings().kernel_ps + work_ps, bytes};
  if (bytes != 0) memcpy(static_cast<char*>(room) + host_kernel_head, argument, bytes);
  return kernel;
}

void unmake(HostKernel* kernel) { free(kernel); }

Result launch(const HostKernel& kernel, Stream* stream) {
  void* const execution = room_for_host_kernel(kernel.argument_bytes);
  if (execution == nullptr) return Result::out_of_memory;
  memcpy(execution, &kernel, host_kernel_head + kernel.argument_bytes);
  const Start start{.latency_ps = 0, .step_ps = kernel.takes_ps};
  const Result result = Streams::get().call(stream, run_on_host, execution, &start);
  if (result != Result::done) free(execution);
  return result;
}

}  // namespace dryfly::gpu

extern "C" void dryfly_kernel_announce(int precision, std::int64_t operations, std::int64_t bytes) {
  constexpr std::int64_t most = std::int64_t{1} << 56;  // sums stay below the end of time
  if (precision < 0 || precision > 2) return;
  dryfly::gpu::Announced& all = dryfly::gpu::announced;
  if (operations > 0 && operations < most) all.operations[precision] += static_cast<std::uint64_t>(operations);
  if (bytes > 0 && bytes < most) all.bytes += static_cast<std::uint64_t>(bytes);
}

// A library that is loaded where another one was has its kernels at the other's addresses: the last one counts.
extern "C" void dryfly_kernel_register(const void* function, void (*invoke)(const void*, void**),
                                       const std::size_t* sizes, unsigned count) {
  using dryfly::gpu::Kernel;
  if (const Kernel* const known = dryfly::gpu::find(function); known != nullptr && known->invoke == invoke) return;
  auto* const kernel = static_cast<Kernel*>(malloc(sizeof(Kernel) + count * sizeof *sizes));
  if (kernel == nullptr) abort();
  pthread_mutex_lock(&dryfly::gpu::table_lock);
  Kernel*& head = dryfly::gpu::head_of(function);
  kernel->function = function;
  kernel->invoke = invoke;
  kernel->next = head;
  kernel->count = count;
  memcpy(kernel->sizes, sizes, count * sizeof *sizes);
  head = kernel;
  pthread_mutex_unlock(&dryfly::gpu::table_lock);
}
