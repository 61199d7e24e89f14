// libze_loader.so.1: Level Zero's calls that MPI libraries and their users make, over gpu/runtime.hpp. A tile is a
// device of the runtime; a GPU of several, where the program asks for such (ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE), is a
// name for its tiles, whose memory is taken from the first that has room.
//
// A command queue and an immediate command list are streams: their commands run in order, whatever flags say. A command
// list keeps its commands until it is executed. Kernels are functions of the program, by an extension of dryfly's own
// (include/dryfly/level_zero.h). What is not simulated answers ZE_RESULT_ERROR_UNSUPPORTED_FEATURE. Left out: modules,
// images, timestamps of events, and waiting for an event that nothing signals before.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "gpu/device_clock.hpp"
#include "gpu/kernels.hpp"
#include "gpu/level_zero_types.hpp"
#include "gpu/pci.hpp"
#include "gpu/runtime.hpp"
#include "gpu/streams.hpp"

#define ZE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace dryfly::gpu;
using namespace dryfly::gpu::level_zero;
using dryfly::gpu::Kind;

constexpr std::uint32_t api_version = 1 << 16 | 12;
constexpr std::uint32_t driver_version = 1;
constexpr std::uint32_t vendor = 0x8086, gpu_max = 0x0bd5;
constexpr std::uint64_t ps_per_ns = 1000;
constexpr std::uint64_t memory_page_bytes = 64 << 10;

Runtime& runtime() { return Runtime::get(); }
Streams& streams() { return Streams::get(); }
const Settings& settings() { return runtime().settings(); }

int code_of(Result result) {
  switch (result) {
    case Result::done:
      return success;
    case Result::not_ready:
      return not_ready;
    case Result::no_device:
      return uninitialized;
    case Result::bad_handle:
      return invalid_null_handle;
    case Result::out_of_memory:
      return out_of_device_memory;
    case Result::not_permitted:
    case Result::no_kernel:
    case Result::bad_shape:
      return unsupported_feature;
    case Result::bad_value:
    case Result::already:
    case Result::not_registered:
    case Result::own_handle:
      return invalid_argument;
  }
  return invalid_argument;
}

// Every handle leads to one of these; what it is of is looked at in each call.
enum class Type : std::uint64_t {
  driver = 0x6472'7966'6c79'0001,
  context,
  device,
  queue,
  list,
  pool,
  event,
  fence,
};
struct Object {
  Type type;
};
template <class Each>
bool is(const Each* object) {
  return object != nullptr && object->type == Each::own;
}
template <class Each>
Each* make() {
  void* const room = calloc(1, sizeof(Each));
  if (room == nullptr) return nullptr;
  auto* const made = new (room) Each{};
  made->type = Each::own;
  return made;
}
template <class Each>
void unmake(Each* object) {
  object->type = {};
  free(object);
}

struct Driver : Object {
  static constexpr Type own = Type::driver;
};
struct Context : Object {
  static constexpr Type own = Type::context;
};
struct Device : Object {
  static constexpr Type own = Type::device;
  int first;  // of the runtime's devices, and how many it is a name for
  int count;
  bool is_tile;  // which it is of `root`
  Device* root;  // or null
  Device* tiles[devices_max];
  int tile_count;
};
struct Signal : Object {
  static constexpr Type own = Type::event;
  Event* event;
};
struct Pool : Object {
  static constexpr Type own = Type::pool;
  std::uint32_t count;
  Context* context;
};
struct Fence : Object {
  static constexpr Type own = Type::fence;
  Event* event;
};
struct Queue : Object {
  static constexpr Type own = Type::queue;
  Device* device;
  Stream* stream;
  QueueDescription description;
};
struct Command {
  enum Kind { copy, fill, kernel, wait, signal, reset } kind;
  void* to;
  const void* from;
  Rows rows;
  Pattern pattern;
  Event* event;
  HostKernel* host_kernel;
};
struct List : Object {
  static constexpr Type own = Type::list;
  Context* context;
  Device* device;
  Stream* stream;  // null: it is to be executed by a queue
  QueueDescription description;
  bool closed;
  Command* commands;
  std::size_t count;
  std::size_t room;
};

// What this process sees. Made at the first call.
struct Node {
  Driver driver;
  Context context;  // the default one
  Device tiles[devices_max];
  Device gpus[devices_max];
  Device* shown[devices_max];
  int shown_count;
};

void describe(Node& node) {
  const Settings& here = settings();
  node.driver.type = Driver::own;
  node.context.type = Context::own;
  int gpus = 0;
  for (int i = 0; i < here.devices; ++i) {
    Device& tile = node.tiles[i];
    tile.type = Device::own;
    tile.first = i;
    tile.count = 1;
    const bool begins = i == 0 || here.physical[i] / here.tiles != here.physical[i - 1] / here.tiles;
    Device& gpu = node.gpus[begins ? gpus++ : gpus - 1];
    gpu.type = Device::own;
    if (begins) gpu.first = i;
    ++gpu.count;
    gpu.tiles[gpu.tile_count++] = &tile;
    tile.root = here.hierarchy == Hierarchy::flat ? nullptr : &gpu;
    tile.is_tile = here.hierarchy != Hierarchy::flat;
  }
  // Of a GPU with one tile nothing is shown below it.
  for (int i = 0; i < gpus; ++i) {
    Device& gpu = node.gpus[i];
    if (gpu.tile_count > 1) continue;
    gpu.tiles[0]->root = nullptr;
    gpu.tiles[0]->is_tile = false;
    gpu.tile_count = 0;
  }
  const bool whole = here.hierarchy == Hierarchy::composite;
  node.shown_count = whole ? gpus : here.devices;
  for (int i = 0; i < node.shown_count; ++i) node.shown[i] = whole ? &node.gpus[i] : &node.tiles[i];
}

Node& node() {
  static Node all{};
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { describe(all); });
  return all;
}

// The device as which the program knows that of an allocation.
Device* shown_of(const Place& place) {
  if (place.kind != Kind::device || place.device < 0 || place.device >= settings().devices) return nullptr;
  Device& tile = node().tiles[place.device];
  if (settings().hierarchy != Hierarchy::composite) return &tile;
  if (tile.root != nullptr && !place.allocation.whole) return &tile;
  for (int i = 0; i < node().shown_count; ++i) {
    Device& gpu = *node().shown[i];
    if (place.device >= gpu.first && place.device < gpu.first + gpu.count) return &gpu;
  }
  return &tile;
}

// What lists are filled by: `count` says how many there is room for, and then how many there are.
template <class Each, class Fill>
int list_out(std::uint32_t* count, Each* to, std::uint32_t have, Fill fill) {
  if (count == nullptr) return invalid_null_pointer;
  if (*count == 0 || *count > have) *count = have;
  if (to == nullptr) return success;
  for (std::uint32_t i = 0; i < *count; ++i) fill(to[i], i);
  return success;
}

// Clears what it fills, and leaves the head that says what it is.
template <class Properties>
void clear(Properties& properties) {
  memset(reinterpret_cast<char*>(&properties) + sizeof(Base), 0, sizeof properties - sizeof(Base));
}

int gpu_of(const Device& device) { return settings().physical[device.first] / settings().tiles; }

void fill_uuid(std::uint8_t (&uuid)[16], int gpu, int tile) {
  memset(uuid, 0, sizeof uuid);
  uuid[0] = vendor & 0xff;
  uuid[1] = vendor >> 8;
  uuid[2] = gpu_max & 0xff;
  uuid[3] = gpu_max >> 8;
  uuid[8] = static_cast<std::uint8_t>(gpu + 1);
  uuid[15] = static_cast<std::uint8_t>(tile);
}

// The thread's device for the time of a call.
class On {
 public:
  explicit On(int device) : before_(runtime().device()) { runtime().set_device(device); }
  ~On() { runtime().set_device(before_); }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

 private:
  const int before_;
};

// Kernels.

int refuse_module() {
  static bool said = false;
  if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
    fputs(
        "dryfly: the program makes a module of Level Zero, whose kernels are not run on a simulated GPU; functions "
        "that "
        "were compiled for this computer are (dryfly/level_zero.h)\n",
        stderr);
  }
  return unsupported_feature;
}

// Memory.

int allocate(Kind kind, std::size_t bytes, std::size_t alignment, const Device* device, void** to) {
  if (to == nullptr) return invalid_null_pointer;
  if (bytes == 0) return unsupported_size;
  if ((alignment & (alignment - 1)) != 0) return unsupported_alignment;
  const int first = device != nullptr ? device->first : 0;
  const int count = kind == Kind::device && device != nullptr ? device->count : 1;
  Result result = Result::bad_value;
  for (int i = first; i < first + count; ++i) {
    const On on(i);
    result = runtime().allocate(kind, bytes, *to, alignment);
    if (result != Result::out_of_memory) break;
  }
  if (result == Result::done && count > 1) runtime().mark_whole(*to);
  return code_of(result);
}

// Descriptors by which other processes learn of this one's memory: an allocation's is made when it is first asked for.
// A process that gets one by whatever way has all that the handle says, for that is what is in its file.
class Shared {
 public:
  int descriptor(std::uint64_t id, const Handle& handle) {
    const Guard guard(lock_);
    Entry* unused = nullptr;
    for (Entry& each : entries_) {
      if (each.id == id) return each.file;
      if (each.id == 0 && unused == nullptr) unused = &each;
    }
    const int file = unused != nullptr ? memfd_create("dryfly-gpu-handle", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (file < 0) return -1;
    // Sealed: it is not the memory itself, so who maps it to write there is to be told that this cannot be.
    if (write(file, &handle, sizeof handle) != sizeof handle ||
        fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
      close(file);
      return -1;
    }
    *unused = {id, file};
    return file;
  }
  void forget(std::uint64_t id) {
    const Guard guard(lock_);
    for (Entry& each : entries_) {
      if (id == 0 || each.id != id) continue;
      close(each.file);
      each.id = 0;
    }
  }

 private:
  struct Entry {
    std::uint64_t id;
    int file;
  };
  class Guard {
   public:
    explicit Guard(pthread_mutex_t& lock) : lock_(lock) { pthread_mutex_lock(&lock_); }
    ~Guard() { pthread_mutex_unlock(&lock_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    pthread_mutex_t& lock_;
  };
  Entry entries_[Shown::most] = {};
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
};
Shared shared;

int show(const void* pointer, IpcHandle* to) {
  if (pointer == nullptr || to == nullptr) return invalid_null_pointer;
  Handle handle;
  if (const Result result = runtime().show(pointer, handle); result != Result::done) return code_of(result);
  const int file = shared.descriptor(runtime().place_of(pointer).allocation.id, handle);
  if (file < 0) return out_of_host_memory;
  memset(to, 0, sizeof *to);
  memcpy(to, &file, sizeof file);
  return success;
}

int open_shown(const Device* device, const IpcHandle& from, void** to) {
  if (to == nullptr) return invalid_null_pointer;
  int file = -1;
  memcpy(&file, &from, sizeof file);
  Handle handle;
  if (pread(file, &handle, sizeof handle, 0) != sizeof handle) return invalid_argument;
  const On on(device->first);
  return code_of(runtime().open(handle, *to));
}

// Commands.

int perform(Stream* stream, const Device& device, const Command& command) {
  const On on(device.first);
  switch (command.kind) {
    case Command::copy:
      return code_of(streams().copy(command.to, command.from, command.rows, stream, Returning::at_once));
    case Command::fill:
      return code_of(
          streams().fill(command.to, command.pattern, Rows{command.rows.width, 1, 0, 0}, stream, Returning::at_once));
    case Command::kernel:
      return code_of(launch(*command.host_kernel, stream));
    case Command::wait:
      if (!streams().is_recorded(command.event)) return invalid_synchronization_object;
      return code_of(streams().wait(stream, command.event));
    case Command::signal:
      return code_of(streams().signal(command.event, stream));
    case Command::reset:
      return code_of(streams().reset(command.event));
  }
  return invalid_argument;
}

constexpr std::uint32_t synchronous = 1;  // ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS

int add(List& list, const Command& command) {
  if (list.stream != nullptr) return perform(list.stream, *list.device, command);
  if (list.count == list.room) {
    const std::size_t room = list.room == 0 ? 16 : 2 * list.room;
    auto* const more = static_cast<Command*>(realloc(list.commands, room * sizeof *list.commands));
    if (more == nullptr) return out_of_host_memory;
    list.commands = more;
    list.room = room;
  }
  list.commands[list.count++] = command;
  return success;
}

void forget_commands(List& list) {
  for (std::size_t i = 0; i < list.count; ++i) {
    if (list.commands[i].kind == Command::kernel) unmake(list.commands[i].host_kernel);
  }
  list.count = 0;
}

int add(List& list, Command::Kind kind, const Signal* signal) {
  Command command{};
  command.kind = kind;
  command.event = signal->event;
  return add(list, command);
}

// `command`: null for what only waits and signals.
int append(List* list, const Command* command, Signal* signal, std::uint32_t count, Signal** waits) {
  if (!is(list) || (signal != nullptr && !is(signal))) return invalid_null_handle;
  if (list->closed) return invalid_argument;
  if (count != 0 && waits == nullptr) return invalid_size;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!is(waits[i])) return invalid_null_handle;
    if (const int code = add(*list, Command::wait, waits[i]); code != success) return code;
  }
  if (command != nullptr) {
    if (const int code = add(*list, *command); code != success) return code;
  }
  if (signal != nullptr) {
    if (const int code = add(*list, Command::signal, signal); code != success) return code;
  }
  if (list->stream != nullptr && list->description.mode == synchronous) {
    return code_of(streams().synchronize(list->stream));
  }
  return success;
}

int append_copy(List* list, void* to, const void* from, const Rows& rows, Signal* signal, std::uint32_t count,
                Signal** waits) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr || from == nullptr) return invalid_null_pointer;
  Command command{};
  command.kind = Command::copy;
  command.to = to;
  command.from = from;
  command.rows = rows;
  return append(list, &command, signal, count, waits);
}

// Groups of queues, in the order in which a GPU Max shows them: kernels and copies, and copies alone, twice.
constexpr std::uint32_t queue_computes = 1;  // ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE
constexpr struct {
  std::uint32_t flags;
  std::uint32_t queues;
} queue_groups[] = {{0x7, 1}, {0x2, 1}, {0x2, 7}};
constexpr std::uint32_t queue_group_count = sizeof queue_groups / sizeof *queue_groups;

std::uint64_t ps_of(std::uint64_t ns) { return ns > Streams::forever / ps_per_ns ? Streams::forever : ns * ps_per_ns; }

// Until something signals it, for which another thread may be on its way.
int wait_for(Event* event, std::uint64_t ns) {
  std::uint64_t left_ps = ps_of(ns);
  while (!streams().is_recorded(event)) {
    const std::uint64_t step_ps = settings().query_ps;
    if (const Result result = streams().query(event); result != Result::done) return code_of(result);
    if (ns == 0 || left_ps < step_ps) return not_ready;
    if (left_ps != Streams::forever) left_ps -= step_ps;
    sched_yield();
  }
  return code_of(streams().synchronize(event, left_ps));
}

int query(Event* event) {
  const int code = code_of(streams().query(event));
  return code == success && !streams().is_recorded(event) ? not_ready : code;
}

}  // namespace

// Drivers.

ZE_EXPORT int zeInit(std::uint32_t) { return settings().devices == 0 ? uninitialized : success; }
ZE_EXPORT int zeDriverGet(std::uint32_t* count, Driver** to) {
  if (settings().devices == 0) return uninitialized;
  return list_out(count, to, 1, [](Driver*& each, std::uint32_t) { each = &node().driver; });
}
ZE_EXPORT int zeInitDrivers(std::uint32_t* count, Driver** to, const Base*) { return zeDriverGet(count, to); }
ZE_EXPORT int zeDriverGetApiVersion(Driver* driver, std::uint32_t* to) {
  if (!is(driver)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = api_version;
  return success;
}
ZE_EXPORT int zeDriverGetProperties(Driver* driver, DriverProperties* to) {
  if (!is(driver)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  clear(*to);
  fill_uuid(to->uuid, -1, 0);
  to->version = driver_version;
  return success;
}
ZE_EXPORT int zeDriverGetIpcProperties(Driver* driver, FlagProperties* to) {
  constexpr std::uint32_t memory = 1;
  if (!is(driver)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  to->flags = memory;
  return success;
}
ZE_EXPORT int zeDriverGetExtensionProperties(Driver* driver, std::uint32_t* count, DriverExtension* to) {
  if (!is(driver)) return invalid_null_handle;
  return list_out(count, to, 1, [](DriverExtension& each, std::uint32_t) {
    snprintf(each.name, sizeof each.name, "ZE_extension_pci_properties");
    each.version = 1 << 16;
  });
}
ZE_EXPORT int zeDriverGetLastErrorDescription(Driver* driver, const char** to) {
  if (!is(driver)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = "";
  return success;
}

// Devices.

ZE_EXPORT int zeDeviceGet(Driver* driver, std::uint32_t* count, Device** to) {
  if (!is(driver)) return invalid_null_handle;
  return list_out(count, to, static_cast<std::uint32_t>(node().shown_count),
                  [](Device*& each, std::uint32_t i) { each = node().shown[i]; });
}
ZE_EXPORT int zeDeviceGetSubDevices(Device* device, std::uint32_t* count, Device** to) {
  if (!is(device)) return invalid_null_handle;
  return list_out(count, to, static_cast<std::uint32_t>(device->tile_count),
                  [device](Device*& each, std::uint32_t i) { each = device->tiles[i]; });
}
ZE_EXPORT int zeDeviceGetRootDevice(Device* device, Device** to) {
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = device->root;
  return success;
}
ZE_EXPORT int zeDeviceGetProperties(Device* device, DeviceProperties* to) {
  constexpr std::uint32_t gpu = 1, subdevice = 0x2, ecc = 0x4;
  constexpr std::uint32_t ns_structure = 0x3;  // else the resolution is cycles a second
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  const int tile = settings().physical[device->first] % settings().tiles;
  clear(*to);
  to->kind = gpu;
  to->vendor = vendor;
  to->device = gpu_max;
  to->flags = ecc | (device->is_tile ? subdevice : 0);
  to->tile = device->is_tile ? static_cast<std::uint32_t>(tile) : 0;
  to->clock_mhz = 1600;
  to->most_allocated = settings().memory_bytes;
  to->hardware_contexts = 65536;
  to->threads_per_unit = 8;
  to->lanes = 16;
  to->units_per_subslice = 8;
  to->subslices_per_slice = 56;
  to->slices = static_cast<std::uint32_t>(device->count);
  to->timer_resolution = to->type == ns_structure ? 1 : 1'000'000'000;
  to->timestamp_bits = 64;
  to->kernel_timestamp_bits = 64;
  fill_uuid(to->uuid, gpu_of(*device), device->count > 1 ? 0 : tile + 1);
  snprintf(to->name, sizeof to->name, "simulated GPU");
  return success;
}
ZE_EXPORT int zeDeviceGetComputeProperties(Device* device, ComputeProperties* to) {
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  clear(*to);
  to->group_threads = to->group_x = to->group_y = to->group_z = 1024;
  to->count_x = to->count_y = to->count_z = ~0u;
  to->local_bytes = 128 << 10;
  to->subgroup_kinds = 2;
  to->subgroups[0] = 16;
  to->subgroups[1] = 32;
  return success;
}
ZE_EXPORT int zeDeviceGetMemoryProperties(Device* device, std::uint32_t* count, MemoryProperties* to) {
  if (!is(device)) return invalid_null_handle;
  return list_out(count, to, 1, [device](MemoryProperties& each, std::uint32_t) {
    clear(each);
    each.clock_mhz = 3200;
    each.bus_bits = 64;
    each.bytes = settings().memory_bytes * static_cast<std::uint64_t>(device->count);
    snprintf(each.name, sizeof each.name, "HBM");
  });
}
ZE_EXPORT int zeDeviceGetMemoryAccessProperties(Device* device, MemoryAccess* to) {
  constexpr std::uint32_t all = 0xf, read_and_write = 1;
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  to->host = to->device = to->shared_by_one = all;
  to->shared_by_all = read_and_write;
  to->of_system = 0;
  return success;
}
ZE_EXPORT int zeDeviceGetCacheProperties(Device* device, std::uint32_t* count, Base* to) {
  if (!is(device)) return invalid_null_handle;
  return list_out(count, to, 0, [](Base&, std::uint32_t) {});
}
ZE_EXPORT int zeDeviceGetExternalMemoryProperties(Device* device, ExternalMemory* to) {
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  clear(*to);
  return success;
}
ZE_EXPORT int zeDeviceGetCommandQueueGroupProperties(Device* device, std::uint32_t* count, QueueGroup* to) {
  if (!is(device)) return invalid_null_handle;
  return list_out(count, to, queue_group_count, [](QueueGroup& each, std::uint32_t i) {
    each.flags = queue_groups[i].flags;
    each.most_pattern_bytes = Pattern::most;
    each.queues = queue_groups[i].queues;
  });
}
ZE_EXPORT int zeDevicePciGetPropertiesExt(Device* device, PciProperties* to) {
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  clear(*to);
  to->domain = pci_domain;
  to->bus = static_cast<std::uint32_t>(pci_bus(settings(), device->first));
  to->generation = 5;
  to->width = 16;
  to->bytes_per_s = static_cast<std::int64_t>(settings().link_bytes_per_s);
  return success;
}
ZE_EXPORT int zeDeviceGetP2PProperties(Device* device, Device* peer, FlagProperties* to) {
  constexpr std::uint32_t access = 1, atomics = 2, bytes_per_ns = 1;
  if (!is(device) || !is(peer)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  to->flags = access | atomics;
  for (auto* next = static_cast<Base*>(to->next); next != nullptr; next = static_cast<Base*>(next->next)) {
    if (next->type != PeerBandwidth::structure) continue;
    auto& bandwidth = *static_cast<PeerBandwidth*>(next);
    clear(bandwidth);
    const int from = settings().physical[device->first], at = settings().physical[peer->first];
    const std::uint64_t rate = from == at ? settings().memory_bytes_per_s : peer_rate(settings(), from, at);
    bandwidth.logical_bandwidth = bandwidth.physical_bandwidth = static_cast<std::uint32_t>(rate / 1'000'000'000);
    bandwidth.bandwidth_unit = bytes_per_ns;
  }
  return success;
}
ZE_EXPORT int zeDeviceCanAccessPeer(Device* device, Device* peer, std::uint8_t* to) {
  if (!is(device) || !is(peer)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = 1;
  return success;
}
ZE_EXPORT int zeDeviceGetStatus(Device* device) { return is(device) ? success : invalid_null_handle; }
ZE_EXPORT int zeDeviceGetGlobalTimestamps(Device* device, std::uint64_t* host, std::uint64_t* at) {
  if (!is(device)) return invalid_null_handle;
  if (host == nullptr || at == nullptr) return invalid_null_pointer;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  *host = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
  *at = *host;
  return success;
}

// Contexts.

ZE_EXPORT int zeContextCreate(Driver* driver, const Base* description, Context** to) {
  if (!is(driver)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  *to = make<Context>();
  return *to != nullptr ? success : out_of_host_memory;
}
ZE_EXPORT int zeContextCreateEx(Driver* driver, const Base* description, std::uint32_t, Device**, Context** to) {
  return zeContextCreate(driver, description, to);
}
ZE_EXPORT Context* zeDriverGetDefaultContext(Driver* driver) { return is(driver) ? &node().context : nullptr; }
ZE_EXPORT int zeContextDestroy(Context* context) {
  if (!is(context)) return invalid_null_handle;
  if (context != &node().context) unmake(context);
  return success;
}
ZE_EXPORT int zeContextGetStatus(Context* context) { return is(context) ? success : invalid_null_handle; }
ZE_EXPORT int zeContextSystemBarrier(Context* context, Device* device) {
  return is(context) && is(device) ? success : invalid_null_handle;
}
ZE_EXPORT int zeContextMakeMemoryResident(Context* context, Device* device, void*, std::size_t) {
  return zeContextSystemBarrier(context, device);
}
ZE_EXPORT int zeContextEvictMemory(Context* context, Device* device, void*, std::size_t) {
  return zeContextSystemBarrier(context, device);
}

// Memory.

ZE_EXPORT int zeMemAllocDevice(Context* context, const Base* description, std::size_t bytes, std::size_t alignment,
                               Device* device, void** to) {
  if (!is(context) || !is(device)) return invalid_null_handle;
  if (description == nullptr) return invalid_null_pointer;
  return allocate(Kind::device, bytes, alignment, device, to);
}
ZE_EXPORT int zeMemAllocHost(Context* context, const Base* description, std::size_t bytes, std::size_t alignment,
                             void** to) {
  if (!is(context)) return invalid_null_handle;
  if (description == nullptr) return invalid_null_pointer;
  return allocate(Kind::pinned, bytes, alignment, nullptr, to);
}
ZE_EXPORT int zeMemAllocShared(Context* context, const Base* of_device, const Base* of_host, std::size_t bytes,
                               std::size_t alignment, Device* device, void** to) {
  if (!is(context) || (device != nullptr && !is(device))) return invalid_null_handle;
  if (of_device == nullptr || of_host == nullptr) return invalid_null_pointer;
  return allocate(Kind::managed, bytes, alignment, device, to);
}
ZE_EXPORT int zeMemFree(Context* context, void* pointer) {
  if (!is(context)) return invalid_null_handle;
  if (pointer == nullptr) return invalid_null_pointer;
  const Place place = runtime().place_of(pointer);
  const int code = code_of(runtime().release(pointer, place.kind == Kind::pinned));
  if (code == success) shared.forget(place.allocation.id);
  return code;
}
ZE_EXPORT int zeMemFreeExt(Context* context, const Base*, void* pointer) { return zeMemFree(context, pointer); }
ZE_EXPORT int zeMemGetAllocProperties(Context* context, const void* pointer, AllocationProperties* to, Device** at) {
  enum { unknown, of_host, of_device, of_both };
  if (!is(context)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  const Place place = runtime().place_of(pointer);  // of null it is unknown, as the driver answers
  const bool is_known = place.kind == Kind::device || place.kind == Kind::managed || place.kind == Kind::pinned;
  to->kind = place.kind == Kind::device    ? of_device
             : place.kind == Kind::managed ? of_both
             : place.kind == Kind::pinned  ? of_host
                                           : unknown;
  to->id = is_known ? place.allocation.id : 0;
  to->page_bytes = is_known ? memory_page_bytes : 0;
  if (at != nullptr) *at = shown_of(place);
  return success;
}
ZE_EXPORT int zeMemGetAddressRange(Context* context, const void* pointer, void** base, std::size_t* bytes) {
  constexpr int address_not_found = 0x78000021;
  if (!is(context)) return invalid_null_handle;
  if (pointer == nullptr) return invalid_null_pointer;
  const Place place = runtime().place_of(pointer);
  if (place.kind == Kind::host) return address_not_found;
  if (base != nullptr) *base = reinterpret_cast<void*>(place.allocation.start);
  if (bytes != nullptr) *bytes = place.allocation.bytes;
  return success;
}
ZE_EXPORT int zeMemGetIpcHandle(Context* context, const void* pointer, IpcHandle* to) {
  return is(context) ? show(pointer, to) : invalid_null_handle;
}
ZE_EXPORT int zeMemPutIpcHandle(Context* context, IpcHandle) { return is(context) ? success : invalid_null_handle; }
ZE_EXPORT int zeMemOpenIpcHandle(Context* context, Device* device, IpcHandle handle, std::uint32_t, void** to) {
  return is(context) && is(device) ? open_shown(device, handle, to) : invalid_null_handle;
}
ZE_EXPORT int zeMemCloseIpcHandle(Context* context, const void* pointer) {
  if (!is(context)) return invalid_null_handle;
  return code_of(runtime().close(const_cast<void*>(pointer)));
}
ZE_EXPORT int zeMemGetIpcHandleFromFileDescriptorExp(Context* context, std::uint64_t file, IpcHandle* to) {
  if (!is(context)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  const int number = static_cast<int>(file);
  memset(to, 0, sizeof *to);
  memcpy(to, &number, sizeof number);
  return success;
}
ZE_EXPORT int zeMemGetFileDescriptorFromIpcHandleExp(Context* context, IpcHandle handle, std::uint64_t* to) {
  if (!is(context)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  int number = -1;
  memcpy(&number, &handle, sizeof number);
  *to = static_cast<std::uint64_t>(number);
  return success;
}

// Of Intel's driver, as zeDriverGetExtensionFunctionAddress names it: a handle for each tile of an allocation.
static int zexMemGetIpcHandles(Context* context, const void* pointer, std::uint32_t* count, IpcHandle* to) {
  if (!is(context)) return invalid_null_handle;
  int code = success;
  const int listed = list_out(count, to, 1, [&](IpcHandle& each, std::uint32_t) { code = show(pointer, &each); });
  return listed != success ? listed : code;
}
static int zexMemOpenIpcHandles(Context* context, Device* device, std::uint32_t count, IpcHandle* handles,
                                std::uint32_t flags, void** to) {
  if (count != 1 || handles == nullptr) return invalid_argument;
  return zeMemOpenIpcHandle(context, device, handles[0], flags, to);
}
static int zexDriverImportExternalPointer(Driver* driver, void* start, std::size_t bytes) {
  return is(driver) ? code_of(runtime().register_host(start, bytes)) : invalid_null_handle;
}
static int zexDriverReleaseImportedPointer(Driver* driver, void* start) {
  return is(driver) ? code_of(runtime().unregister_host(start)) : invalid_null_handle;
}
static int zexDriverGetHostPointerBaseAddress(Driver* driver, void* pointer, void** base) {
  if (!is(driver)) return invalid_null_handle;
  if (base == nullptr) return invalid_null_pointer;
  const Place place = runtime().place_of(pointer);
  if (place.kind != Kind::registered) return invalid_argument;
  *base = reinterpret_cast<void*>(place.allocation.start);
  return success;
}
// Of dryfly alone: include/dryfly/level_zero.h.
static int dryflyCommandListAppendHostKernel(List* list, void (*kernel)(void*), const void* argument, std::size_t bytes,
                                             Signal* signal, std::uint32_t count, Signal** waits) {
  const std::uint64_t work_ps = take_announced_ps(is(list) ? list->device->count : 1);
  if (!is(list)) return invalid_null_handle;
  if (kernel == nullptr || (argument == nullptr && bytes != 0)) return invalid_null_pointer;
  if ((queue_groups[list->description.ordinal].flags & queue_computes) == 0) return invalid_list_type;
  Command command{};
  command.kind = Command::kernel;
  command.host_kernel = make_host_kernel(kernel, argument, bytes, work_ps);
  if (command.host_kernel == nullptr) return out_of_host_memory;
  const std::size_t before = list->count;
  const int code = append(list, &command, signal, count, waits);
  if (list->stream == nullptr && code == success) return success;
  list->count = before;
  unmake(command.host_kernel);
  return code;
}
ZE_EXPORT int zeDriverGetExtensionFunctionAddress(Driver* driver, const char* name, void** to) {
  static const struct {
    const char* name;
    void* function;
  } functions[] = {
      {"dryflyCommandListAppendHostKernel", reinterpret_cast<void*>(dryflyCommandListAppendHostKernel)},
      {"zexMemGetIpcHandles", reinterpret_cast<void*>(zexMemGetIpcHandles)},
      {"zexMemOpenIpcHandles", reinterpret_cast<void*>(zexMemOpenIpcHandles)},
      {"zexDriverImportExternalPointer", reinterpret_cast<void*>(zexDriverImportExternalPointer)},
      {"zexDriverReleaseImportedPointer", reinterpret_cast<void*>(zexDriverReleaseImportedPointer)},
      {"zexDriverGetHostPointerBaseAddress", reinterpret_cast<void*>(zexDriverGetHostPointerBaseAddress)},
  };
  if (!is(driver)) return invalid_null_handle;
  if (name == nullptr || to == nullptr) return invalid_null_pointer;
  for (const auto& each : functions) {
    if (strcmp(each.name, name) != 0) continue;
    *to = each.function;
    return success;
  }
  return unsupported_feature;
}

// Events.

ZE_EXPORT int zeEventPoolCreate(Context* context, const PoolDescription* description, std::uint32_t, Device**,
                                Pool** to) {
  if (!is(context)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->count == 0) return invalid_size;
  *to = make<Pool>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->count = description->count;
  (*to)->context = context;
  return success;
}
ZE_EXPORT int zeEventPoolDestroy(Pool* pool) {
  if (!is(pool)) return invalid_null_handle;
  unmake(pool);
  return success;
}
ZE_EXPORT int zeEventCreate(Pool* pool, const EventDescription* description, Signal** to) {
  if (!is(pool)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->index >= pool->count) return invalid_argument;
  Event* event = nullptr;
  if (const Result result = streams().create(event, false); result != Result::done) return code_of(result);
  *to = make<Signal>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->event = event;
  return success;
}
ZE_EXPORT int zeEventDestroy(Signal* event) {
  if (!is(event)) return invalid_null_handle;
  streams().destroy(event->event);
  unmake(event);
  return success;
}
ZE_EXPORT int zeEventHostSignal(Signal* event) {
  return is(event) ? code_of(streams().signal(event->event, nullptr)) : invalid_null_handle;
}
ZE_EXPORT int zeEventHostReset(Signal* event) {
  return is(event) ? code_of(streams().reset(event->event)) : invalid_null_handle;
}
ZE_EXPORT int zeEventQueryStatus(Signal* event) { return is(event) ? query(event->event) : invalid_null_handle; }
ZE_EXPORT int zeEventHostSynchronize(Signal* event, std::uint64_t ns) {
  return is(event) ? wait_for(event->event, ns) : invalid_null_handle;
}

// Command queues and fences.

ZE_EXPORT int zeCommandQueueCreate(Context* context, Device* device, const QueueDescription* description, Queue** to) {
  if (!is(context) || !is(device)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->ordinal >= queue_group_count) return invalid_argument;
  const On on(device->first);
  Stream* stream = nullptr;
  if (const Result result = streams().create(stream, false); result != Result::done) return code_of(result);
  *to = make<Queue>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->device = device;
  (*to)->stream = stream;
  (*to)->description = *description;
  return success;
}
ZE_EXPORT int zeCommandQueueDestroy(Queue* queue) {
  if (!is(queue)) return invalid_null_handle;
  streams().destroy(queue->stream);
  unmake(queue);
  return success;
}
ZE_EXPORT int zeCommandQueueExecuteCommandLists(Queue* queue, std::uint32_t count, List** lists, Fence* fence) {
  if (!is(queue) || (fence != nullptr && !is(fence))) return invalid_null_handle;
  if (lists == nullptr) return invalid_null_pointer;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!is(lists[i])) return invalid_null_handle;
    if (lists[i]->stream != nullptr || !lists[i]->closed) return invalid_argument;
    for (std::size_t k = 0; k < lists[i]->count; ++k) {
      const int code = perform(queue->stream, *queue->device, lists[i]->commands[k]);
      if (code != success) return code;
    }
  }
  if (fence != nullptr) streams().signal(fence->event, queue->stream);
  return queue->description.mode == synchronous ? code_of(streams().synchronize(queue->stream)) : success;
}
ZE_EXPORT int zeCommandQueueSynchronize(Queue* queue, std::uint64_t ns) {
  return is(queue) ? code_of(streams().synchronize(queue->stream, ps_of(ns))) : invalid_null_handle;
}
ZE_EXPORT int zeCommandQueueGetOrdinal(Queue* queue, std::uint32_t* to) {
  if (!is(queue)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = queue->description.ordinal;
  return success;
}
ZE_EXPORT int zeCommandQueueGetIndex(Queue* queue, std::uint32_t* to) {
  if (!is(queue)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = queue->description.index;
  return success;
}
ZE_EXPORT int zeFenceCreate(Queue* queue, const FenceDescription* description, Fence** to) {
  constexpr std::uint32_t signaled = 1;
  if (!is(queue)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  Event* event = nullptr;
  if (const Result result = streams().create(event, false); result != Result::done) return code_of(result);
  *to = make<Fence>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->event = event;
  if ((description->flags & signaled) != 0) streams().signal(event, nullptr);
  return success;
}
ZE_EXPORT int zeFenceDestroy(Fence* fence) {
  if (!is(fence)) return invalid_null_handle;
  streams().destroy(fence->event);
  unmake(fence);
  return success;
}
ZE_EXPORT int zeFenceReset(Fence* fence) {
  return is(fence) ? code_of(streams().reset(fence->event)) : invalid_null_handle;
}
ZE_EXPORT int zeFenceQueryStatus(Fence* fence) { return is(fence) ? query(fence->event) : invalid_null_handle; }
ZE_EXPORT int zeFenceHostSynchronize(Fence* fence, std::uint64_t ns) {
  return is(fence) ? wait_for(fence->event, ns) : invalid_null_handle;
}

// Command lists.

ZE_EXPORT int zeCommandListCreate(Context* context, Device* device, const ListDescription* description, List** to) {
  if (!is(context) || !is(device)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->ordinal >= queue_group_count) return invalid_argument;
  *to = make<List>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->context = context;
  (*to)->device = device;
  (*to)->description.ordinal = description->ordinal;
  return success;
}
ZE_EXPORT int zeCommandListCreateImmediate(Context* context, Device* device, const QueueDescription* description,
                                           List** to) {
  if (!is(context) || !is(device)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->ordinal >= queue_group_count) return invalid_argument;
  const On on(device->first);
  Stream* stream = nullptr;
  if (const Result result = streams().create(stream, false); result != Result::done) return code_of(result);
  *to = make<List>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->context = context;
  (*to)->device = device;
  (*to)->stream = stream;
  (*to)->description = *description;
  return success;
}
ZE_EXPORT int zeCommandListDestroy(List* list) {
  if (!is(list)) return invalid_null_handle;
  if (list->stream != nullptr) streams().destroy(list->stream);
  forget_commands(*list);
  free(list->commands);
  unmake(list);
  return success;
}
ZE_EXPORT int zeCommandListClose(List* list) {
  if (!is(list)) return invalid_null_handle;
  list->closed = list->stream == nullptr;
  return success;
}
ZE_EXPORT int zeCommandListReset(List* list) {
  if (!is(list)) return invalid_null_handle;
  list->closed = false;
  forget_commands(*list);
  return success;
}
ZE_EXPORT int zeCommandListHostSynchronize(List* list, std::uint64_t ns) {
  if (!is(list)) return invalid_null_handle;
  if (list->stream == nullptr) return invalid_argument;
  return code_of(streams().synchronize(list->stream, ps_of(ns)));
}
ZE_EXPORT int zeCommandListGetDeviceHandle(List* list, Device** to) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = list->device;
  return success;
}
ZE_EXPORT int zeCommandListGetContextHandle(List* list, Context** to) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = list->context;
  return success;
}
ZE_EXPORT int zeCommandListGetOrdinal(List* list, std::uint32_t* to) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = list->description.ordinal;
  return success;
}
ZE_EXPORT int zeCommandListIsImmediate(List* list, std::uint8_t* to) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = list->stream != nullptr ? 1 : 0;
  return success;
}
ZE_EXPORT int zeCommandListImmediateAppendCommandListsExp(List* list, std::uint32_t many, List** lists, Signal* signal,
                                                          std::uint32_t count, Signal** waits) {
  if (!is(list)) return invalid_null_handle;
  if (list->stream == nullptr || lists == nullptr) return invalid_argument;
  if (const int code = append(list, nullptr, nullptr, count, waits); code != success) return code;
  for (std::uint32_t i = 0; i < many; ++i) {
    if (!is(lists[i])) return invalid_null_handle;
    if (lists[i]->stream != nullptr || !lists[i]->closed) return invalid_argument;
    for (std::size_t k = 0; k < lists[i]->count; ++k) {
      if (const int code = add(*list, lists[i]->commands[k]); code != success) return code;
    }
  }
  return append(list, nullptr, signal, 0, nullptr);
}

ZE_EXPORT int zeCommandListAppendBarrier(List* list, Signal* signal, std::uint32_t count, Signal** waits) {
  return append(list, nullptr, signal, count, waits);
}
ZE_EXPORT int zeCommandListAppendMemoryRangesBarrier(List* list, std::uint32_t, const std::size_t*, const void**,
                                                     Signal* signal, std::uint32_t count, Signal** waits) {
  return append(list, nullptr, signal, count, waits);
}
ZE_EXPORT int zeCommandListAppendSignalEvent(List* list, Signal* event) {
  return is(event) ? append(list, nullptr, event, 0, nullptr) : invalid_null_handle;
}
ZE_EXPORT int zeCommandListAppendWaitOnEvents(List* list, std::uint32_t count, Signal** events) {
  return append(list, nullptr, nullptr, count, events);
}
ZE_EXPORT int zeCommandListAppendEventReset(List* list, Signal* event) {
  if (!is(list) || !is(event)) return invalid_null_handle;
  return list->closed ? static_cast<int>(invalid_argument) : add(*list, Command::reset, event);
}
ZE_EXPORT int zeCommandListAppendMemoryCopy(List* list, void* to, const void* from, std::size_t bytes, Signal* signal,
                                            std::uint32_t count, Signal** waits) {
  return append_copy(list, to, from, Rows{bytes, 1, bytes, bytes}, signal, count, waits);
}
ZE_EXPORT int zeCommandListAppendMemoryCopyFromContext(List* list, void* to, Context* context, const void* from,
                                                       std::size_t bytes, Signal* signal, std::uint32_t count,
                                                       Signal** waits) {
  if (!is(context)) return invalid_null_handle;
  return zeCommandListAppendMemoryCopy(list, to, from, bytes, signal, count, waits);
}
ZE_EXPORT int zeCommandListAppendMemoryCopyRegion(List* list, void* to, const CopyRegion* to_region,
                                                  std::uint32_t to_pitch, std::uint32_t to_slice, const void* from,
                                                  const CopyRegion* from_region, std::uint32_t from_pitch,
                                                  std::uint32_t from_slice, Signal* signal, std::uint32_t count,
                                                  Signal** waits) {
  if (to == nullptr || from == nullptr || to_region == nullptr || from_region == nullptr) return invalid_null_pointer;
  const CopyRegion &in = *to_region, &of = *from_region;
  if (in.width != of.width || in.height != of.height || in.depth != of.depth) return invalid_size;
  const std::uint64_t rows = in.height == 0 ? 1 : in.height, slices = in.depth == 0 ? 1 : in.depth;
  if (const int code = append(list, nullptr, nullptr, count, waits); code != success) return code;
  for (std::uint64_t i = 0; i < slices; ++i) {
    char* const target = static_cast<char*>(to) + (in.z + i) * to_slice + std::uint64_t{in.y} * to_pitch + in.x;
    const char* const source =
        static_cast<const char*>(from) + (of.z + i) * from_slice + std::uint64_t{of.y} * from_pitch + of.x;
    const Rows each{in.width, rows, to_pitch, from_pitch};
    if (const int code = append_copy(list, target, source, each, nullptr, 0, nullptr); code != success) return code;
  }
  return append(list, nullptr, signal, 0, nullptr);
}
ZE_EXPORT int zeCommandListAppendMemoryFill(List* list, void* to, const void* pattern, std::size_t pattern_bytes,
                                            std::size_t bytes, Signal* signal, std::uint32_t count, Signal** waits) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr || pattern == nullptr) return invalid_null_pointer;
  if (pattern_bytes == 0 || pattern_bytes > Pattern::most || (pattern_bytes & (pattern_bytes - 1)) != 0) {
    return unsupported_size;
  }
  Command command{};
  command.kind = Command::fill;
  command.to = to;
  command.rows.width = bytes;
  command.pattern.count = pattern_bytes;
  memcpy(command.pattern.bytes, pattern, pattern_bytes);
  return append(list, &command, signal, count, waits);
}
// Where memory is does not change what a copy of it takes.
ZE_EXPORT int zeCommandListAppendMemoryPrefetch(List* list, const void*, std::size_t) {
  return is(list) ? success : invalid_null_handle;
}
ZE_EXPORT int zeCommandListAppendMemAdvise(List* list, Device* device, const void*, std::size_t, std::uint32_t) {
  return is(list) && is(device) ? success : invalid_null_handle;
}

// Modules and kernels.

ZE_EXPORT int zeModuleCreate() { return refuse_module(); }
ZE_EXPORT int zeKernelCreate() { return refuse_module(); }

// The loader's own.

struct LoaderVersion {
  char component[64];
  std::uint32_t spec;
  int major;
  int minor;
  int patch;
};
ZE_EXPORT int zelGetLoaderVersion(std::size_t* bytes, char* to) {
  constexpr char version[] = "1.12.0";
  if (bytes == nullptr) return invalid_null_pointer;
  if (to != nullptr) snprintf(to, *bytes, "%s", version);
  *bytes = sizeof version;
  return success;
}
ZE_EXPORT int zelLoaderGetVersions(std::size_t* count, LoaderVersion* to) {
  if (count == nullptr) return invalid_null_pointer;
  if (to != nullptr && *count > 0) {
    *to = {"loader", api_version, 1, 12, 0};
  }
  *count = 1;
  return success;
}
ZE_EXPORT bool zelCheckIsLoaderInTearDown() { return false; }
ZE_EXPORT int zelSetDriverTeardown() { return success; }
ZE_EXPORT int zelLoaderDriverCheck() { return success; }
ZE_EXPORT void* zelLoaderGetContext() { return nullptr; }

// An argument that nobody reads needs no name in C's calling convention.
#define MISSING(name) \
  ZE_EXPORT int name() { return unsupported_feature; }
#include "gpu/level_zero_missing.def"
#undef MISSING
