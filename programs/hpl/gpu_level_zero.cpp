// Level Zero: a tile, or a whole GPU with ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE, is a device. The two streams are
// immediate command lists that are in order. Marks are events of a counter-based pool, which may be signalled again
// without a reset. A kernel is a function of this program, by an extension that dryfly's driver alone has
// (dryfly/level_zero.h). Declarations are our own, from the public specification
// (https://oneapi-src.github.io/level-zero-spec).
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <type_traits>

#include "dryfly/level_zero.h"
#include "gpu_runtimes.hpp"

namespace dryfly::hpl {
namespace {

using Handle = void*;

// In front of everything that a call describes or fills.
struct Head {
  std::uint32_t type;
  const void* next;
};
struct ContextDescription {
  Head head{0xd, nullptr};
  std::uint32_t flags = 0;
};
struct QueueDescription {
  Head head{0xe, nullptr};
  std::uint32_t ordinal, index, flags, mode, priority;
};
struct PoolDescription {
  Head head{0x10, nullptr};
  std::uint32_t flags, count;
};
struct CounterBasedPool {
  Head head{0x20014, nullptr};
  std::uint32_t flags;
};
struct EventDescription {
  Head head{0x11, nullptr};
  std::uint32_t index, signal, wait;
};
struct DeviceMemory {
  Head head{0x15, nullptr};
  std::uint32_t flags = 0, ordinal = 0;
};
struct HostMemory {
  Head head{0x16, nullptr};
  std::uint32_t flags = 0;
};
struct DeviceProperties {
  Head head{0x3, nullptr};
  std::uint32_t kind, vendor, device, flags, subdevice, clock_mhz;
  std::uint64_t most_allocated;
  std::uint32_t contexts, priorities, threads, lanes, units, subslices, slices;
  std::uint64_t resolution;
  std::uint32_t bits, kernel_bits;
  std::array<std::uint8_t, 16> uuid;
  char name[256];
};
struct MemoryProperties {
  Head head{0x7, nullptr};
  std::uint32_t flags, clock_mhz, bus_bits;
  std::uint64_t bytes;
  char name[256];
};
struct PciProperties {
  Head head{0x10008, nullptr};
  std::uint32_t domain, bus, device, function;
  std::int32_t generation, width;
  std::int64_t bytes_per_s;
};
struct Region {
  std::uint32_t x, y, z, width, height, depth;
};

constexpr std::uint32_t kInOrder = 2, kAsynchronous = 2, kHostVisible = 1, kOfImmediateLists = 1, kOfHost = 4;
constexpr std::uint32_t kComputeQueues = 0, kCopyQueues = 1;  // the order of a GPU Max
constexpr std::uint64_t kForever = ~std::uint64_t{0};
constexpr std::size_t kAlignment = 64;

struct Calls {
  int (*Init)(std::uint32_t);
  int (*DriverGet)(std::uint32_t*, Handle*);
  int (*DriverGetExtensionFunctionAddress)(Handle, const char*, void**);
  int (*DeviceGet)(Handle, std::uint32_t*, Handle*);
  int (*DeviceGetProperties)(Handle, DeviceProperties*);
  int (*DeviceGetMemoryProperties)(Handle, std::uint32_t*, MemoryProperties*);
  int (*DevicePciGetPropertiesExt)(Handle, PciProperties*);
  int (*ContextCreate)(Handle, const ContextDescription*, Handle*);
  int (*MemAllocDevice)(Handle, const DeviceMemory*, std::size_t, std::size_t, Handle, void**);
  int (*MemAllocHost)(Handle, const HostMemory*, std::size_t, std::size_t, void**);
  int (*MemFree)(Handle, void*);
  int (*EventPoolCreate)(Handle, const PoolDescription*, std::uint32_t, Handle*, Handle*);
  int (*EventCreate)(Handle, const EventDescription*, Handle*);
  int (*EventHostSynchronize)(Handle, std::uint64_t);
  int (*CommandListCreateImmediate)(Handle, Handle, const QueueDescription*, Handle*);
  int (*CommandListHostSynchronize)(Handle, std::uint64_t);
  int (*CommandListAppendSignalEvent)(Handle, Handle);
  int (*CommandListAppendWaitOnEvents)(Handle, std::uint32_t, Handle*);
  int (*CommandListAppendMemoryCopy)(Handle, void*, const void*, std::size_t, Handle, std::uint32_t, Handle*);
  int (*CommandListAppendMemoryCopyRegion)(Handle, void*, const Region*, std::uint32_t, std::uint32_t, const void*,
                                           const Region*, std::uint32_t, std::uint32_t, Handle, std::uint32_t, Handle*);
  dryfly_append_host_kernel append_kernel;

  // The first name that is missing; empty: all are there.
  std::string find(void* library) {
    std::string missing;
    const auto one = [&](auto& call, const char* name) {
      call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, name));
      if (call == nullptr && missing.empty()) missing = name;
    };
#define DRYFLY_CALL(name) one(name, "ze" #name)
    DRYFLY_CALL(Init);
    DRYFLY_CALL(DriverGet);
    DRYFLY_CALL(DriverGetExtensionFunctionAddress);
    DRYFLY_CALL(DeviceGet);
    DRYFLY_CALL(DeviceGetProperties);
    DRYFLY_CALL(DeviceGetMemoryProperties);
    DRYFLY_CALL(DevicePciGetPropertiesExt);
    DRYFLY_CALL(ContextCreate);
    DRYFLY_CALL(MemAllocDevice);
    DRYFLY_CALL(MemAllocHost);
    DRYFLY_CALL(MemFree);
    DRYFLY_CALL(EventPoolCreate);
    DRYFLY_CALL(EventCreate);
    DRYFLY_CALL(EventHostSynchronize);
    DRYFLY_CALL(CommandListCreateImmediate);
    DRYFLY_CALL(CommandListHostSynchronize);
    DRYFLY_CALL(CommandListAppendSignalEvent);
    DRYFLY_CALL(CommandListAppendWaitOnEvents);
    DRYFLY_CALL(CommandListAppendMemoryCopy);
    DRYFLY_CALL(CommandListAppendMemoryCopyRegion);
#undef DRYFLY_CALL
    return missing;
  }
};

class LevelZeroGpu final : public Gpu {
 public:
  LevelZeroGpu(const Calls& calls, Handle driver, Handle device)
      : Gpu("Level Zero", {"MPIX_Query_ze_support"}), calls_(calls), device_(device) {
    const ContextDescription description;
    check("making a context", calls_.ContextCreate(driver, &description, &context_));
    kernels_ = new_list(kComputeQueues);
    copies_ = new_list(kCopyQueues);
    followed_ = LevelZeroGpu::new_mark();
  }

  // The last byte of a device's number that is unique tells a GPU's tiles apart, as Intel's driver has it: 0 of the
  // GPU.
  std::string address() const override {
    PciProperties at{};
    DeviceProperties properties{};
    check("asking for the device's address", calls_.DevicePciGetPropertiesExt(device_, &at));
    check("asking for the device's properties", calls_.DeviceGetProperties(device_, &properties));
    const int tile = properties.uuid.back() - 1;
    char text[32];
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", at.domain, at.bus, at.device, at.function);
    return tile < 0 ? text : text + std::string(kTile) + std::to_string(tile);
  }

  // There is no call for what others have taken of it.
  std::size_t free_bytes() const override {
    std::uint32_t one = 1;
    MemoryProperties memory{};
    check("asking for the device's memory", calls_.DeviceGetMemoryProperties(device_, &one, &memory));
    return memory.bytes;
  }

  void* take(std::size_t bytes, Place place) override {
    const DeviceMemory of_device;
    const HostMemory of_host;
    void* memory = nullptr;
    const int code = place == Place::device
                         ? calls_.MemAllocDevice(context_, &of_device, bytes, kAlignment, device_, &memory)
                         : calls_.MemAllocHost(context_, &of_host, bytes, kAlignment, &memory);
    return code == 0 ? memory : nullptr;
  }

  void give_back(void* memory, Place) override { check("giving back memory", calls_.MemFree(context_, memory)); }

  void copy(void* to, const void* from, std::size_t bytes, Order order) override {
    if (bytes == 0) return;
    check("a copy", calls_.CommandListAppendMemoryCopy(list(order), to, from, bytes, nullptr, 0, nullptr));
  }

  void copy_columns(void* to, std::size_t to_stride, const void* from, std::size_t from_stride, std::size_t bytes,
                    std::size_t columns, Order order) override {
    if (bytes == 0 || columns == 0) return;
    const Region region{0, 0, 0, static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(columns), 0};
    check("a copy", calls_.CommandListAppendMemoryCopyRegion(
                        list(order), to, &region, static_cast<std::uint32_t>(to_stride), 0, from, &region,
                        static_cast<std::uint32_t>(from_stride), 0, nullptr, 0, nullptr));
  }

  void let_copies_follow() override {
    set(followed_);
    Handle event = event_of(followed_).handle;
    check("waiting for an event", calls_.CommandListAppendWaitOnEvents(copies_, 1, &event));
  }

  Mark new_mark() override {
    CounterBasedPool counted{.flags = kOfImmediateLists};
    const PoolDescription pool{.head = {PoolDescription{}.head.type, &counted}, .flags = kHostVisible, .count = 1};
    const EventDescription description{.index = 0, .signal = kOfHost, .wait = kOfHost};
    Handle made = nullptr;
    check("making a pool of events", calls_.EventPoolCreate(context_, &pool, 1, &device_, &made));
    marks_.push_back(std::make_unique<Event>());
    check("making an event", calls_.EventCreate(made, &description, &marks_.back()->handle));
    return marks_.back().get();
  }

  void set(Mark mark) override {
    check("signalling an event", calls_.CommandListAppendSignalEvent(kernels_, event_of(mark).handle));
    event_of(mark).is_set = true;
  }

  void wait(Mark mark) override {
    if (!event_of(mark).is_set) return;
    check("waiting for an event", calls_.EventHostSynchronize(event_of(mark).handle, kForever));
  }

  void wait_for_kernels() override { synchronize("waiting for kernels", kernels_); }
  void wait_for_copies() override { synchronize("waiting for copies", copies_); }

 private:
  struct Event {
    Handle handle = nullptr;
    bool is_set = false;
  };

  void launch_body(Body* body) override {
    const auto call_body = [](void* argument) { call(*static_cast<Body**>(argument)); };
    check("appending a kernel", calls_.append_kernel(kernels_, call_body, &body, sizeof body, nullptr, 0, nullptr));
  }

  Handle new_list(std::uint32_t ordinal) const {
    const QueueDescription queue{
        .ordinal = ordinal, .index = 0, .flags = kInOrder, .mode = kAsynchronous, .priority = 0};
    Handle made = nullptr;
    check("making a command list", calls_.CommandListCreateImmediate(context_, device_, &queue, &made));
    return made;
  }
  void synchronize(const char* what, Handle list) const {
    check(what, calls_.CommandListHostSynchronize(list, kForever));
  }
  static Event& event_of(Mark mark) { return *static_cast<Event*>(mark); }
  Handle list(Order order) const { return order == Order::beside ? copies_ : kernels_; }

  const Calls calls_;
  Handle device_, context_ = nullptr, kernels_ = nullptr, copies_ = nullptr;
  std::vector<std::unique_ptr<Event>> marks_;
  Mark followed_ = nullptr;
};

}  // namespace

std::unique_ptr<Gpu> open_level_zero(std::string* error) {
  void* library = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return nullptr;
  Calls calls{};
  const std::string missing = calls.find(library);
  Handle driver = nullptr;
  std::uint32_t drivers = 1, devices = 0;
  if (!missing.empty()) {
    *error = std::string(kMemoryGpu) + "Level Zero's library has no " + missing;
    return nullptr;
  }
  if (calls.Init(0) != 0 || calls.DriverGet(&drivers, &driver) != 0 || drivers == 0 ||
      calls.DeviceGet(driver, &devices, nullptr) != 0 || devices == 0) {
    *error = kNoGpu;
    return nullptr;
  }
  void* append = nullptr;
  calls.DriverGetExtensionFunctionAddress(driver, DRYFLY_APPEND_HOST_KERNEL, &append);
  calls.append_kernel = reinterpret_cast<dryfly_append_host_kernel>(append);
  if (append == nullptr) {
    *error = std::string(kMemoryGpu) + "Level Zero's driver has no " + DRYFLY_APPEND_HOST_KERNEL + kOnlySimulated;
    return nullptr;
  }
  std::vector<Handle> all(devices);
  calls.DeviceGet(driver, &devices, all.data());
  return std::make_unique<LevelZeroGpu>(calls, driver, all[static_cast<std::size_t>(number_on_node()) % devices]);
}

}  // namespace dryfly::hpl
