#include <dlfcn.h>

#include <array>
#include <type_traits>

#include "gpu_runtimes.hpp"

namespace dryfly::hpl {
namespace {

// CUDA's and HIP's calls differ in the first letters of their names.
struct Calls {
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
    one(register_kernel, "dryfly_kernel_register");
    return missing;
  }
};

constexpr int kAnyWay = 4;  // of a copy: the runtime finds out
constexpr unsigned kNotBlocking = 1, kWithoutTiming = 2;

struct Runtime {
  const char *name, *prefix;
  std::array<const char*, 4> libraries;
  std::vector<const char*> asked_of_mpi;
};

void* open_library(const Runtime& runtime) {
  void* library = nullptr;
  for (const char* name : runtime.libraries)
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  return library;
}

// All kernels are this one to the runtime: a body, which is its one argument.
void solver_kernel() {}

class CudaGpu final : public Gpu {
 public:
  CudaGpu(const Runtime& runtime, const Calls& calls, int device)
      : Gpu(runtime.name, runtime.asked_of_mpi), calls_(calls), device_(device) {
    check("choosing a device", calls_.SetDevice(device_));
    check("making a stream", calls_.StreamCreateWithFlags(&kernels_, kNotBlocking));
    check("making a stream", calls_.StreamCreateWithFlags(&copies_, kNotBlocking));
    followed_ = CudaGpu::new_mark();
    const std::size_t argument = sizeof(Body*);
    const auto call_body = [](const void*, void** arguments) { call(*static_cast<Body**>(arguments[0])); };
    calls_.register_kernel(reinterpret_cast<const void*>(&solver_kernel), call_body, &argument, 1);
  }

  std::string address() const override {
    char text[32] = "";
    check("asking for the device's address", calls_.DeviceGetPCIBusId(text, sizeof text, device_));
    return text;
  }

  std::size_t free_bytes() const override {
    std::size_t unused = 0, all = 0;
    check("asking for the device's memory", calls_.MemGetInfo(&unused, &all));
    return unused;
  }

  void* take(std::size_t bytes, Place place) override {
    void* memory = nullptr;
    const int code = place == Place::device ? calls_.Malloc(&memory, bytes) : calls_.HostAlloc(&memory, bytes, 0);
    return code == 0 ? memory : nullptr;
  }

  void give_back(void* memory, Place place) override {
    check("giving back memory", place == Place::device ? calls_.Free(memory) : calls_.FreeHost(memory));
  }

  void copy(void* to, const void* from, std::size_t bytes, Order order) override {
    if (bytes == 0) return;
    check("a copy", calls_.MemcpyAsync(to, from, bytes, kAnyWay, stream(order)));
  }

  void copy_columns(void* to, std::size_t to_stride, const void* from, std::size_t from_stride, std::size_t bytes,
                    std::size_t columns, Order order) override {
    if (bytes == 0 || columns == 0) return;
    check("a copy", calls_.Memcpy2DAsync(to, to_stride, from, from_stride, bytes, columns, kAnyWay, stream(order)));
  }

  void let_copies_follow() override {
    set(followed_);
    check("waiting for an event", calls_.StreamWaitEvent(copies_, followed_, 0));
  }

  Mark new_mark() override {
    Mark mark = nullptr;
    check("making an event", calls_.EventCreateWithFlags(&mark, kWithoutTiming));
    return mark;
  }

  void set(Mark mark) override { check("recording an event", calls_.EventRecord(mark, kernels_)); }
  void wait(Mark mark) override { check("waiting for an event", calls_.EventSynchronize(mark)); }
  void wait_for_kernels() override { check("waiting for kernels", calls_.StreamSynchronize(kernels_)); }
  void wait_for_copies() override { check("waiting for copies", calls_.StreamSynchronize(copies_)); }

 private:
  void launch_body(Body* body) override {
    void* arguments[] = {&body};
    check("launching a kernel", calls_.LaunchKernel(reinterpret_cast<const void*>(&solver_kernel), {1, 1, 1}, {1, 1, 1},
                                                    arguments, 0, kernels_));
  }
  void* stream(Order order) const { return order == Order::beside ? copies_ : kernels_; }

  const Calls calls_;
  const int device_;
  void *kernels_ = nullptr, *copies_ = nullptr;  // streams
  Mark followed_ = nullptr;
};

std::unique_ptr<Gpu> open_runtime(const Runtime& runtime, std::string* error) {
  void* library = open_library(runtime);
  if (library == nullptr) return nullptr;
  Calls calls;
  const std::string missing = calls.find(library, runtime.prefix);
  int devices = 0;
  if (!missing.empty()) {
    *error = kMemoryGpu + std::string(runtime.name) + "'s library has no " + missing + kOnlySimulated;
    return nullptr;
  }
  if (calls.GetDeviceCount(&devices) != 0 || devices == 0) {
    *error = kNoGpu;
    return nullptr;
  }
  return std::make_unique<CudaGpu>(runtime, calls, number_on_node() % devices);
}

}  // namespace

std::unique_ptr<Gpu> open_cuda(std::string* error) {
  return open_runtime({"CUDA",
                       "cuda",
                       {"libcudart.so.12", "libcudart.so.13", "libcudart.so.11.0", "libcudart.so"},
                       {"MPIX_Query_cuda_support"}},
                      error);
}

std::unique_ptr<Gpu> open_hip(std::string* error) {
  return open_runtime({"HIP",
                       "hip",
                       {"libamdhip64.so.6", "libamdhip64.so.7", "libamdhip64.so.5", "libamdhip64.so"},
                       {"MPIX_Query_rocm_support", "MPIX_Query_hip_support"}},
                      error);
}

}  // namespace dryfly::hpl
