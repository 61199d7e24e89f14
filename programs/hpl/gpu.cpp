#include "gpu.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <type_traits>
#include <vector>

#include "agree.hpp"
#include "work.hpp"

namespace dryfly::hpl {

// CUDA's and HIP's calls differ in the first letters of their names.
struct Gpu::Calls {
  struct Shape {
    unsigned x, y, z;
  };
  int (*GetDeviceCount)(int*);
  int (*SetDevice)(int);
  int (*DeviceGetPCIBusId)(char*, int, int);
  int (*MemGetInfo)(std::size_t*, std::size_t*);
  int (*Malloc)(void**, std::size_t);
  int (*Free)(void*);
  int (*HostAlloc)(void**, std::size_t, unsigned);
  int (*FreeHost)(void*);
  int (*MemcpyAsync)(void*, const void*, std::size_t, int, void*);
  int (*Memcpy2DAsync)(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int, void*);
  int (*StreamCreateWithFlags)(void**, unsigned);
  int (*StreamSynchronize)(void*);
  int (*StreamWaitEvent)(void*, void*, unsigned);
  int (*EventCreateWithFlags)(void**, unsigned);
  int (*EventRecord)(void*, void*);
  int (*EventSynchronize)(void*);
  int (*LaunchKernel)(const void*, Shape, Shape, void**, std::size_t, void*);

  // Of dryfly's runtimes only.
  void (*announce)(int, std::int64_t, std::int64_t);
  void (*register_kernel)(const void*, void (*)(const void*, void**), const std::size_t*, unsigned);

  // The first name that is missing; empty: all are there.
  std::string find(void* library, const std::string& prefix) {
    std::string missing;
    const auto one = [&](auto& call, const std::string& name) {
      call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, name.c_str()));
      if (call == nullptr && missing.empty()) missing = name;
    };
#define DRYFLY_CALL(name) one(name, prefix + #name)
    DRYFLY_CALL(GetDeviceCount);
    DRYFLY_CALL(SetDevice);
    DRYFLY_CALL(DeviceGetPCIBusId);
    DRYFLY_CALL(MemGetInfo);
    DRYFLY_CALL(Malloc);
    DRYFLY_CALL(Free);
    DRYFLY_CALL(HostAlloc);
    DRYFLY_CALL(FreeHost);
    DRYFLY_CALL(MemcpyAsync);
    DRYFLY_CALL(Memcpy2DAsync);
    DRYFLY_CALL(StreamCreateWithFlags);
    DRYFLY_CALL(StreamSynchronize);
    DRYFLY_CALL(StreamWaitEvent);
    DRYFLY_CALL(EventCreateWithFlags);
    DRYFLY_CALL(EventRecord);
    DRYFLY_CALL(EventSynchronize);
    DRYFLY_CALL(LaunchKernel);
#undef DRYFLY_CALL
    one(announce, "dryfly_kernel_announce");
    one(register_kernel, "dryfly_kernel_register");
    return missing;
  }
};

namespace {

constexpr const char* kField = "--memory gpu: ";
constexpr int kAnyWay = 4;  // of a copy: the runtime finds out
constexpr unsigned kNotBlocking = 1, kWithoutTiming = 2;

struct Runtime {
  const char *name, *prefix;
  std::array<const char*, 4> libraries;
  std::array<const char*, 2> asked_of_mpi;
};
constexpr Runtime kRuntimes[] = {
    {"CUDA",
     "cuda",
     {"libcudart.so.12", "libcudart.so.13", "libcudart.so.11.0", "libcudart.so"},
     {"MPIX_Query_cuda_support", nullptr}},
    {"HIP",
     "hip",
     {"libamdhip64.so.6", "libamdhip64.so.7", "libamdhip64.so.5", "libamdhip64.so"},
     {"MPIX_Query_rocm_support", "MPIX_Query_hip_support"}},
};

void* open_library(const Runtime& runtime) {
  void* library = nullptr;
  for (const char* name : runtime.libraries)
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  return library;
}

// MPI's own view of a node would do, but for libraries to which each rank is alone on its node.
int number_on_node() {
  if (const char* number = std::getenv("MPI_LOCALRANKID")) return std::atoi(number);
  MPI_Comm node = MPI_COMM_NULL;
  int number = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &number);
  MPI_Comm_free(&node);
  return number;
}

// All kernels are this one to the runtime: a body, which is its one argument.
void solver_kernel() {}
void call_body(const void*, void** arguments) {
  const std::unique_ptr<std::function<void()>> body(*static_cast<std::function<void()>**>(arguments[0]));
  (*body)();
}

std::int64_t element_bytes(int precision) { return precision == DRYFLY_FP64 ? 8 : precision == DRYFLY_FP32 ? 4 : 2; }

}  // namespace

KernelWork KernelWork::product(std::int64_t m, std::int64_t n, std::int64_t k, int precision) {
  return {precision, 2 * m * n * k, element_bytes(precision) * (m * k + k * n + 2 * m * n)};
}

KernelWork KernelWork::triangular_solve(std::int64_t m, std::int64_t n, int precision) {
  return {precision, m * m * n, element_bytes(precision) * (m * m / 2 + 2 * m * n)};
}

KernelWork KernelWork::memory(std::int64_t bytes) { return {DRYFLY_FP64, 0, bytes}; }

std::unique_ptr<Gpu> Gpu::open(std::string* error) {
  std::unique_ptr<Gpu> gpu(new Gpu);
  gpu->calls_ = std::make_unique<Calls>();
  Calls& calls = *gpu->calls_;
  int devices = 0;
  for (const Runtime& runtime : kRuntimes) {
    void* library = open_library(runtime);
    if (library == nullptr) continue;
    const std::string missing = calls.find(library, runtime.prefix);
    if (!missing.empty()) {
      *error = kField + std::string(runtime.name) + "'s library has no " + missing +
               "; accepted are the GPUs that dryfly run simulates";
      return nullptr;
    }
    gpu->name_ = runtime.name;
    break;
  }
  if (gpu->name_.empty()) {
    *error = std::string(kField) +
             "no GPU runtime is found here; accepted are machines with CUDA or HIP under dryfly run, such as "
             "perlmutter-gpu and frontier";
    return nullptr;
  }
  if (calls.GetDeviceCount(&devices) != 0 || devices == 0) {
    *error = std::string(kField) + "the rank sees no GPU; accepted is one for each rank of a node";
    return nullptr;
  }
  gpu->device_ = number_on_node() % devices;
  gpu->check("choosing a device", calls.SetDevice(gpu->device_));
  gpu->check("making a stream", calls.StreamCreateWithFlags(&gpu->kernels_, kNotBlocking));
  gpu->check("making a stream", calls.StreamCreateWithFlags(&gpu->copies_, kNotBlocking));
  gpu->followed_ = gpu->new_mark();
  const std::size_t argument = sizeof(void*);
  calls.register_kernel(reinterpret_cast<const void*>(&solver_kernel), call_body, &argument, 1);
  return gpu;
}

Gpu::~Gpu() = default;

void Gpu::check(const char* what, int code) const {
  if (code == 0) return;
  std::fprintf(stderr, "dryfly solver: %s answers error %d of %s\n", what, code, name_.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

std::string Gpu::address() const {
  char text[32] = "";
  check("asking for the device's address", calls_->DeviceGetPCIBusId(text, sizeof text, device_));
  return text;
}

bool Gpu::known_to_mpi() const {
  for (const Runtime& runtime : kRuntimes)
    for (const char* name : runtime.asked_of_mpi) {
      if (name == nullptr || name_ != runtime.name) continue;
      const auto ask = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name));
      if (ask != nullptr && ask() == 1) return true;
    }
  return false;
}

std::size_t Gpu::free_bytes() const {
  std::size_t unused = 0, all = 0;
  check("asking for the device's memory", calls_->MemGetInfo(&unused, &all));
  return unused;
}

void* Gpu::take(std::size_t bytes, Place place) {
  void* memory = nullptr;
  const int code = place == Place::device ? calls_->Malloc(&memory, bytes) : calls_->HostAlloc(&memory, bytes, 0);
  return code == 0 ? memory : nullptr;
}

void Gpu::give_back(void* memory, Place place) {
  check("giving back memory", place == Place::device ? calls_->Free(memory) : calls_->FreeHost(memory));
}

void Gpu::launch(const KernelWork& work, std::function<void()> body) {
  if (numerics_skipped()) body = [] {};
  auto* argument = new std::function<void()>(std::move(body));
  void* arguments[] = {&argument};
  calls_->announce(work.precision, work.operations, work.bytes);
  check("launching a kernel", calls_->LaunchKernel(reinterpret_cast<const void*>(&solver_kernel), {1, 1, 1}, {1, 1, 1},
                                                   arguments, 0, kernels_));
}

void Gpu::copy(void* to, const void* from, std::size_t bytes, Order order) {
  if (bytes == 0) return;
  check("a copy", calls_->MemcpyAsync(to, from, bytes, kAnyWay, order == Order::beside ? copies_ : kernels_));
}

void Gpu::copy_columns(void* to, std::size_t to_stride, const void* from, std::size_t from_stride, std::size_t bytes,
                       std::size_t columns, Order order) {
  if (bytes == 0 || columns == 0) return;
  check("a copy", calls_->Memcpy2DAsync(to, to_stride, from, from_stride, bytes, columns, kAnyWay,
                                        order == Order::beside ? copies_ : kernels_));
}

void Gpu::let_copies_follow() {
  set(followed_);
  check("waiting for an event", calls_->StreamWaitEvent(copies_, followed_, 0));
}

Gpu::Mark Gpu::new_mark() {
  Mark mark = nullptr;
  check("making an event", calls_->EventCreateWithFlags(&mark, kWithoutTiming));
  return mark;
}

void Gpu::set(Mark mark) { check("recording an event", calls_->EventRecord(mark, kernels_)); }
void Gpu::wait(Mark mark) { check("waiting for an event", calls_->EventSynchronize(mark)); }
void Gpu::wait_for_kernels() { check("waiting for kernels", calls_->StreamSynchronize(kernels_)); }
void Gpu::wait_for_copies() { check("waiting for copies", calls_->StreamSynchronize(copies_)); }

namespace {

// Two ranks that have one device: the model of a GPU would give each of them all of it. Empty: there are none.
std::string shared_device(const Gpu& gpu, MPI_Comm all) {
  constexpr std::size_t kName = MPI_MAX_PROCESSOR_NAME, kEach = kName + 32;
  int ranks = 1, length = 0;
  MPI_Comm_size(all, &ranks);
  std::vector<char> mine(kEach), every(kEach * static_cast<std::size_t>(ranks));
  MPI_Get_processor_name(mine.data(), &length);
  std::snprintf(mine.data() + kName, kEach - kName, "%s", gpu.address().c_str());
  MPI_Allgather(mine.data(), kEach, MPI_CHAR, every.data(), kEach, MPI_CHAR, all);
  std::map<std::string, std::size_t> devices;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    const std::string device = std::string(&every[rank * kEach]) + " " + &every[rank * kEach + kName];
    const auto [first, is_new] = devices.try_emplace(device, rank);
    if (!is_new)
      return kField + std::string("ranks ") + std::to_string(first->second) + " and " + std::to_string(rank) +
             " have the same GPU, " + device + "; accepted is one for each rank";
  }
  return "";
}

}  // namespace

void check_gpu_memory(const Gpu& gpu, std::int64_t order, double need_bytes, MPI_Comm all) {
  double usable_bytes = static_cast<double>(gpu.free_bytes());
  MPI_Allreduce(MPI_IN_PLACE, &usable_bytes, 1, MPI_DOUBLE, MPI_MIN, all);
  if (need_bytes <= usable_bytes) return;
  char text[160];
  std::snprintf(text, sizeof text,
                "N = %lld: a process's part of the matrix and its panels need %.4g MB of a GPU, and %.4g MB are free; "
                "accepted is a smaller -N, or more ranks",
                static_cast<long long>(order), need_bytes / 1e6, usable_bytes / 1e6);
  throw BadInput(text);
}

std::unique_ptr<Gpu> open_gpu(bool wanted, Transfers transfers, MPI_Comm all) {
  if (!wanted) return nullptr;
  std::string error;
  std::unique_ptr<Gpu> gpu = Gpu::open(&error);
  agree(error, "--memory gpu: a rank has no GPU", all);
  agree(shared_device(*gpu, all), "--memory gpu: two ranks have one GPU", all);
  if (transfers == Transfers::device && !gpu->known_to_mpi())
    error = "--gpu-transfers device: this MPI library says that it does not take " + gpu->runtime() +
            "'s memory; accepted is staged";
  agree(error, "--gpu-transfers device: a rank's MPI library does not take a GPU's memory; accepted is staged", all);
  return gpu;
}

}  // namespace dryfly::hpl
