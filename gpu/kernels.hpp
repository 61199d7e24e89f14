// Kernels that a program compiled for the host (`dryfly nvcc`, `dryfly hipcc`): such a program tells of each, and a
// launch puts it into its stream as the runtime's other work. Models docs/model/gpu.md#kernels. Level Zero's lists take
// functions in their place (include/dryfly/level_zero.h), which have no grid: one is called once.
//
// Threads of a block run one after the other, and so do blocks. Each runs until its end, or until it waits for its
// block's others: then the next one goes on, on a stack of its own. Left out: threads of a warp at the same instant,
// and with it whatever passes values between them; clusters; kernels that launch kernels.
//
// Loaded into user programs: libc only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/runtime.hpp"

namespace dryfly::gpu {

// As both runtimes pass a dim3.
struct Shape {
  unsigned x;
  unsigned y;
  unsigned z;
};

// Arguments are copied before the call comes back. Result::no_kernel: nobody told of that function; the first time it
// is said on standard error.
Result launch(const void* function, Shape grid, Shape block, void** arguments, std::size_t shared_bytes,
              Stream* stream);
bool is_kernel(const void* function);

// What the work takes that was announced of the next kernel, by so many devices together; it is announced no more.
std::uint64_t take_announced_ps(int devices);

// A function as a kernel, with the argument of its append, for as often as its list is executed.
struct HostKernel;
// Null: there is no memory for it. `work_ps`: what it takes beside its launch.
HostKernel* make_host_kernel(void (*function)(void*), const void* argument, std::size_t bytes, std::uint64_t work_ps);
void unmake(HostKernel* kernel);
Result launch(const HostKernel& kernel, Stream* stream);

}  // namespace dryfly::gpu

extern "C" {
// What include/dryfly/work.h calls: what the next kernel that the calling thread launches is going to do.
void dryfly_kernel_announce(int precision, std::int64_t operations, std::int64_t bytes);

// What include/dryfly/device.h calls.
void dryfly_kernel_register(const void* function, void (*invoke)(const void*, void**), const std::size_t* sizes,
                            unsigned count);
void dryfly_kernel_synchronize();
// The same for each thread of a block: how many of those that have not ended gave something else than 0.
int dryfly_kernel_vote(int predicate, int* voters);
void* dryfly_kernel_shared();
extern __thread dryfly::gpu::Shape dryfly_thread_index;
extern __thread dryfly::gpu::Shape dryfly_block_index;
extern __thread dryfly::gpu::Shape dryfly_block_shape;
extern __thread dryfly::gpu::Shape dryfly_grid_shape;
}
