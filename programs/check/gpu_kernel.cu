// Kernels that `dryfly nvcc` compiled, or `dryfly hipcc`, with the names of the other runtime: what each computes, when
// its work is seen, and messages of what it has made. Arguments: what a kernel takes, in microseconds, and rates of a
// device's memory and FP64, in GB/s and TF/s.
#include <dryfly/work.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __HIPCC__
#include <hip/hip_runtime.h>
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaErrorInvalidConfiguration hipErrorInvalidConfiguration
#define cudaErrorInvalidDeviceFunction hipErrorInvalidDeviceFunction
#define cudaErrorNotReady hipErrorNotReady
#define cudaFree hipFree
#define cudaGetLastError hipGetLastError
#define cudaLaunchKernel hipLaunchKernel
#define cudaMalloc hipMalloc
#define cudaMallocHost hipMallocHost
#define cudaMemcpy hipMemcpy
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDefault hipMemcpyDefault
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemcpyToSymbol hipMemcpyToSymbol
#define cudaMemset hipMemset
#define cudaStreamCreate hipStreamCreate
#define cudaStreamQuery hipStreamQuery
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStream_t hipStream_t
#else
#include <cuda.h>
#include <cuda_runtime.h>
#endif

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      printf("rank %d: %s:%d: %s\n", my_rank, __FILE__, __LINE__, #condition);        \
      fflush(stdout);                                                                 \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                   \
    }                                                                                 \
  } while (0)

static int my_rank = 0;

__constant__ float weights[4];
__device__ unsigned arrivals;

__global__ void saxpy(int count, float a, const float* __restrict__ x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] += a * x[i];
}

// Each block's sum; a thread that has nothing to add leaves before the others wait.
template <int Width>
__device__ __forceinline__ float folded(float* partial) {
#pragma unroll
  for (unsigned half = Width / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  __syncthreads();
  return partial[0];
}

template <int Width, typename Value>
__global__ void __launch_bounds__(Width) sums(const Value* from, Value* to, int count) {
  __shared__ float partial[Width];
  float sum = 0;
  for (int i = blockIdx.x * Width + threadIdx.x; i < count; i += Width * gridDim.x) sum += from[i];
  partial[threadIdx.x] = sum;
  const float all = folded<Width>(partial);
  if (threadIdx.x == 0) {
    to[blockIdx.x] = all;
    atomicAdd(&arrivals, 1u);
  }
}

namespace tiles {
// Tiles go through memory of the block's, whose size the launch says.
__global__ void transpose(const float* from, float* to, int side, int tile = 16) {
  extern __shared__ __align__(16) float buffer[];
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < side && y < side) buffer[threadIdx.y * tile + threadIdx.x] = from[y * side + x];
  __syncthreads();
  const int column = blockIdx.y * blockDim.y + threadIdx.x, row = blockIdx.x * blockDim.x + threadIdx.y;
  if (column < side && row < side) to[row * side + column] = buffer[threadIdx.x * tile + threadIdx.y];
}
}  // namespace tiles

struct Point {
  double x;
  char name;
};

static __global__ void describe(Point point, float4 vector, unsigned* to) {
  if (threadIdx.x == 3 && threadIdx.y == 2 && threadIdx.z == 1) {
    to[0] = static_cast<unsigned>(point.x) + static_cast<unsigned>(point.name) + static_cast<unsigned>(vector.w);
    to[1] = blockDim.x * 100 + blockDim.y * 10 + blockDim.z;
    to[2] = static_cast<unsigned>(weights[3]);
  }
  const int others = __syncthreads_count(threadIdx.x == 0);
  if (threadIdx.x == 0) to[3] = static_cast<unsigned>(others);
  if (threadIdx.y == 0) return;
  if (__syncthreads_and(1) != 0 && __syncthreads_or(0) == 0) to[4] = 1;
}

static void computes(float* device, float* other, float* host) {
  enum { count = 100001 };
  for (int i = 0; i < count; ++i) host[i] = static_cast<float>(i % 7);
  CHECK(cudaMemcpy(device, host, count * sizeof(float), cudaMemcpyHostToDevice) == 0);
  CHECK(cudaMemset(other, 0, count * sizeof(float)) == 0);
  for (int round = 0; round < 2; ++round) saxpy<<<(count + 255) / 256, 256>>>(count, 3, device, other);
  CHECK(cudaGetLastError() == 0);
  CHECK(cudaMemcpy(host, other, count * sizeof(float), cudaMemcpyDeviceToHost) == 0);
  for (int i = 0; i < count; ++i) CHECK(host[i] == static_cast<float>(6 * (i % 7)));

  constexpr int width = 128;
  sums<width><<<5, width>>>(device, other, 7000);
  double* const last = reinterpret_cast<double*>(other) + 100;
  sums<1, double><<<dim3(1), dim3(1)>>>(last, last, 0 * width);
  CHECK(cudaMemcpy(host, other, 5 * sizeof(float), cudaMemcpyDeviceToHost) == 0);
  CHECK(host[0] + host[1] + host[2] + host[3] + host[4] == 21000 && host[0] != 0 && host[4] != 0);
}

// Adds one of each thread to what it points to.
template <typename Value>
__global__ void counts(Value* to) {
  atomicAdd(to, Value(1));
}

static void by_its_type(float* device) {
  double* to = reinterpret_cast<double*>(device);
  double seen = 0;
  void* arguments[] = {&to};
  CHECK(cudaMemset(to, 0, sizeof *to) == 0);
  CHECK(cudaLaunchKernel(counts<double>, dim3(3), dim3(7), arguments) == 0);
  CHECK(cudaMemcpy(&seen, to, sizeof seen, cudaMemcpyDefault) == 0 && seen == 21);
}

static void grids(float* device, float* other, float* host, cudaStream_t stream) {
  enum { side = 50, tile = 16 };
  for (int i = 0; i < side * side; ++i) host[i] = static_cast<float>(i);
  CHECK(cudaMemcpy(device, host, side * side * sizeof(float), cudaMemcpyDefault) == 0);
  const dim3 grid((side + tile - 1) / tile, (side + tile - 1) / tile), block(tile, tile);
  tiles::transpose<<<grid, block, tile * tile * sizeof(float), stream>>>(device, other, side, tile);
  CHECK(cudaStreamSynchronize(stream) == 0);
  CHECK(cudaMemcpy(host, other, side * side * sizeof(float), cudaMemcpyDefault) == 0);
  for (int i = 0; i < side * side; ++i) CHECK(host[i] == static_cast<float>(i % side * side + i / side));

  const float given[4] = {0, 0, 0, 9};
  unsigned* to = reinterpret_cast<unsigned*>(other);
  unsigned seen[5];
  CHECK(cudaMemcpyToSymbol(weights, given, sizeof given) == 0 && cudaMemset(to, 0, sizeof seen) == 0);
  describe<<<1, dim3(4, 3, 2), 0, stream>>>(Point{5, 7}, make_float4(0, 0, 0, 11), to);
  CHECK(cudaDeviceSynchronize() == 0 && cudaMemcpy(seen, to, sizeof seen, cudaMemcpyDefault) == 0);
  CHECK(seen[0] == 23 && seen[1] == 432 && seen[2] == 9 && seen[3] == 6 && seen[4] == 1);
}

// Arguments are taken at the launch, and what the kernel makes is seen when its instant has come.
static void order(float* device, float* host, cudaStream_t stream, double kernel_us) {
  int count = 1000;
  float a = 2;
  float* from = device;
  float* to = device + 4096;
  void* arguments[] = {&count, &a, &from, &to};
  for (int i = 0; i < count; ++i) host[i] = 1;
  CHECK(cudaMemcpy(from, host, count * sizeof(float), cudaMemcpyDefault) == 0);
  CHECK(cudaMemset(to, 0, count * sizeof(float)) == 0 && cudaDeviceSynchronize() == 0);
  memset(host, 0, count * sizeof(float));
  const double begin = MPI_Wtime();
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(saxpy), dim3(4), dim3(256), arguments, 0, stream) == 0);
  a = 100;
  CHECK(to[0] == 0 && cudaStreamQuery(stream) == cudaErrorNotReady && to[0] == 0);
  CHECK(cudaStreamSynchronize(stream) == 0 && to[0] == 2 && to[999] == 2);
  const double us = (MPI_Wtime() - begin) * 1e6;
  CHECK(fabs(us - 2 - kernel_us) < 0.2);  // 2: the call

  a = 1;
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(saxpy), dim3(4), dim3(256), arguments, 0, stream) == 0);
  CHECK(cudaMemcpyAsync(host, to, count * sizeof(float), cudaMemcpyDefault, stream) == 0 && host[0] == 0);
  CHECK(cudaStreamSynchronize(stream) == 0 && host[0] == 3 && host[999] == 3);
}

// The longer of the two counts, for the next kernel only.
static void announced(float* device, cudaStream_t stream, double kernel_us, double gb_per_s, double tf_per_s) {
  const double launches[][3] = {{0, 1e8, 1e8 / gb_per_s * 1e-3}, {1e10, 1e8, 1e10 / tf_per_s * 1e-6}, {0, 0, 0}};
  for (const double* each : launches) {
    const double begin = MPI_Wtime();
    dryfly_kernel_announce_work(DRYFLY_FP64, static_cast<int64_t>(each[0]), static_cast<int64_t>(each[1]));
    saxpy<<<1, 32, 0, stream>>>(1, 1, device, device);
    const double launched = MPI_Wtime();
    CHECK(cudaStreamSynchronize(stream) == 0);
    CHECK(fabs((launched - begin) * 1e6 - 2) < 0.1);
    CHECK(fabs((MPI_Wtime() - begin) * 1e6 - 2 - kernel_us - each[2]) < 0.2);
  }
}

// CUDA's driver launches what the runtime names, and knows no other address.
static void by_the_driver(float* device, float* host) {
#ifndef __HIPCC__
  int count = 4;
  float a = 5;
  void* arguments[] = {&count, &a, &device, &device};
  cudaFunction_t function = nullptr;
  for (int i = 0; i < count; ++i) host[i] = 1;
  CHECK(cudaMemcpy(device, host, 4 * sizeof(float), cudaMemcpyDefault) == 0);
  CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(saxpy)) == 0);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS);
  CHECK(cudaMemcpy(host, device, 4 * sizeof(float), cudaMemcpyDefault) == 0 && host[0] == 6 && host[3] == 6);
  CHECK(cuLaunchKernel(function, 1, 1, 1, 2000, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cudaGetFuncBySymbol(&function, &a) == cudaErrorInvalidDeviceFunction && cudaGetLastError() != 0);
#else
  (void)device, (void)host;
#endif
}

static void is_no_kernel(float) {}

static void refuses() {
  float value = 0;
  void* arguments[] = {&value};
  saxpy<<<1, 1025>>>(0, 0, nullptr, nullptr);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  saxpy<<<0, 1>>>(0, 0, nullptr, nullptr);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(is_no_kernel), dim3(1), dim3(1), arguments, 0, nullptr) ==
          cudaErrorInvalidDeviceFunction);
  }
  CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
}

static void messages(float* device, float* other, float* host) {
  enum { count = 200000 };
  for (int i = 0; i < count; ++i) host[i] = static_cast<float>(my_rank + 1);
  CHECK(cudaMemcpy(device, host, count * sizeof(float), cudaMemcpyDefault) == 0);
  CHECK(cudaMemset(other, 0, count * sizeof(float)) == 0);
  saxpy<<<(count + 127) / 128, 128>>>(count, 10, device, other);
  CHECK(cudaDeviceSynchronize() == 0);
  const int partner = my_rank ^ 1;
  MPI_Sendrecv(other, count, MPI_FLOAT, partner, 0, device, count, MPI_FLOAT, partner, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(cudaMemcpy(host, device, count * sizeof(float), cudaMemcpyDefault) == 0);
  for (int i = 0; i < count; ++i) CHECK(host[i] == static_cast<float>(10 * (partner + 1)));
}

#ifndef __HIPCC__
// CUDA's programming guide: a kernel's stream is of the device that is current.
static void of_another_device(float* device, cudaStream_t stream) {
  CHECK(cudaSetDevice(1) == 0);
  saxpy<<<1, 32, 0, stream>>>(1, 1, device, device);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaSetDevice(0) == 0);
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  CHECK(argc == 4);
  float *device = nullptr, *other = nullptr, *host = nullptr;
  cudaStream_t stream;
  CHECK(cudaMalloc(&device, 1 << 20) == 0 && cudaMalloc(&other, 1 << 20) == 0);
  CHECK(cudaMallocHost(&host, 1 << 20) == 0 && cudaStreamCreate(&stream) == 0);
  computes(device, other, host);
  grids(device, other, host, stream);
  by_its_type(device);
  order(device, host, stream, atof(argv[1]));
  announced(device, stream, atof(argv[1]), atof(argv[2]), atof(argv[3]));
  by_the_driver(device, host);
  refuses();
#ifndef __HIPCC__
  of_another_device(device, stream);
#endif
  messages(device, other, host);
  CHECK(cudaFree(device) == 0 && cudaFree(other) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank == 0) printf("ok gpu_kernel\n");
  MPI_Finalize();
  return 0;
}
