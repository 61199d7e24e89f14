// Makes Open MPI 5.0 aware of the simulated GPUs without a build of its own. Its wheels are built without plug-ins and
// without CUDA, but libopen-pal looks at the list of its accelerator components by name, so the list of a preloaded
// library takes its place. The component here is called cuda or rocm, as Open MPI's own are, for its MTL asks the
// provider for that runtime's memory by this name.
//
// Layouts are those of the public headers of Open MPI 5.0 (opal/mca/mca.h, opal/mca/accelerator/accelerator.h; 17
// functions). Left out: Open MPI before and after 5.0, to which this library is not given.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "gpu/pci.hpp"
#include "gpu/runtime.hpp"
#include "gpu/streams.hpp"

extern "C" {

struct opal_class_t {
  const char* name;
  opal_class_t* parent;
  void (*construct)(void*);
  void (*destruct)(void*);
  int initialized;
  int depth;
  void (**constructors)(void*);
  void (**destructors)(void*);
  std::size_t size;
};
extern opal_class_t opal_accelerator_stream_t_class __attribute__((weak));
extern opal_class_t opal_accelerator_event_t_class __attribute__((weak));
extern int opal_class_init_epoch __attribute__((weak));
void opal_class_initialize(opal_class_t*) __attribute__((weak));
}

namespace {

using namespace dryfly::gpu;

constexpr int opal_success = 0;
constexpr int opal_error = -1;
constexpr int opal_out_of_resource = -2;
constexpr int opal_busy = -4;  // OPAL_ERR_RESOURCE_BUSY
constexpr std::uint64_t unified_memory = 1;

// opal_accelerator_stream_t and opal_accelerator_event_t: an object and what it holds.
struct Object {
  opal_class_t* type;
  std::int32_t references;
  void* held;
};

struct Pci {
  std::uint16_t domain;
  std::uint8_t bus;
  std::uint8_t device;
  std::uint8_t function;
};

Runtime& runtime() { return Runtime::get(); }
Streams& streams() { return Streams::get(); }

int code_of(Result result) {
  switch (result) {
    case Result::done:
      return opal_success;
    case Result::not_ready:
      return opal_busy;
    case Result::out_of_memory:
      return opal_out_of_resource;
    default:
      return opal_error;
  }
}

// The classes of what is made here: Open MPI's own, with a destructor that gives back what the object holds. Open MPI
// runs it where it releases the object.
template <typename Held>
void give_back(void* object) {
  streams().destroy(static_cast<Held*>(static_cast<Object*>(object)->held));
}
opal_class_t stream_class = {
    "dryfly_stream", &opal_accelerator_stream_t_class, nullptr, give_back<Stream>, 0, 0, nullptr, nullptr, 0};
opal_class_t event_class = {
    "dryfly_event", &opal_accelerator_event_t_class, nullptr, give_back<Event>, 0, 0, nullptr, nullptr, 0};

Object* new_object(opal_class_t& type, void* held) {
  if (type.initialized != opal_class_init_epoch) {
    type.size = type.parent->size;
    opal_class_initialize(&type);
  }
  auto* object = static_cast<Object*>(malloc(type.size));
  if (object != nullptr) *object = {&type, 1, held};
  return object;
}

Stream* stream_of(const Object* object) { return object != nullptr ? static_cast<Stream*>(object->held) : nullptr; }

// 1: a device knows this memory; its buffers may be moved by the device alone.
int check_address(const void* pointer, int* device, std::uint64_t* flags) {
  *device = -1;
  *flags = 0;
  if (pointer == nullptr || runtime().settings().devices == 0) return 0;
  const Place place = runtime().place_of(pointer);
  if (place.kind != Kind::device && place.kind != Kind::managed) return 0;
  *device = place.device;
  if (place.kind == Kind::managed) *flags = unified_memory;
  return 1;
}

int create_stream(int, Object** object) {
  Stream* stream = nullptr;
  const Result result = streams().create(stream, true);
  if (result != Result::done) return code_of(result);
  *object = new_object(stream_class, stream);
  if (*object == nullptr) streams().destroy(stream);
  return *object != nullptr ? opal_success : opal_out_of_resource;
}

int create_event(int, Object** object) {
  Event* event = nullptr;
  const Result result = streams().create(event, false);
  if (result != Result::done) return code_of(result);
  *object = new_object(event_class, event);
  if (*object == nullptr) streams().destroy(event);
  return *object != nullptr ? opal_success : opal_out_of_resource;
}

int record_event(int, Object* event, Object* stream) {
  if (event == nullptr) return opal_error;
  return code_of(streams().record(static_cast<Event*>(event->held), stream_of(stream)));
}

int query_event(int, Object* event) {
  return event != nullptr ? code_of(streams().query(static_cast<Event*>(event->held))) : opal_error;
}

int copy_later(int, int, void* to, const void* from, std::size_t bytes, Object* stream, int) {
  if (stream == nullptr) return opal_error;
  return code_of(streams().copy(to, from, bytes, stream_of(stream), Returning::at_once));
}

int copy(int, int, void* to, const void* from, std::size_t bytes, int) {
  return code_of(streams().copy(to, from, bytes, nullptr, Returning::when_done));
}

int allocate(int, void** pointer, std::size_t bytes) {
  return code_of(runtime().allocate(Kind::device, bytes, *pointer));
}

int release(int, void* pointer) { return code_of(runtime().release(pointer, false)); }

int address_range(int, const void* pointer, void** base, std::size_t* bytes) {
  const Place place = runtime().place_of(pointer);
  if (place.kind == Kind::host) return opal_error;
  *base = reinterpret_cast<void*>(place.allocation.start);
  *bytes = place.allocation.bytes;
  return opal_success;
}

int register_host(int, void* start, std::size_t bytes) { return code_of(runtime().register_host(start, bytes)); }
int unregister_host(int, void* start) { return code_of(runtime().unregister_host(start)); }

int current_device(int* device) {
  if (runtime().settings().devices == 0) return opal_error;
  *device = runtime().device();
  return opal_success;
}

int pci_of(int device, Pci* address) {
  const Settings& settings = runtime().settings();
  if (device < 0 || device >= settings.devices) return opal_error;
  *address = {pci_domain, static_cast<std::uint8_t>(pci_bus(settings, device)), 0, 0};
  return opal_success;
}

int can_access_peer(int* can, int one, int other) {
  *can = one != other ? 1 : 0;
  return opal_success;
}

int buffer_id(int, const void* pointer, std::uint64_t* id) {
  const Place place = runtime().place_of(pointer);
  if (place.kind == Kind::host) return opal_error;
  *id = place.allocation.start;
  return opal_success;
}

struct Module {
  int (*check_addr)(const void*, int*, std::uint64_t*);
  int (*create_stream)(int, Object**);
  int (*create_event)(int, Object**);
  int (*record_event)(int, Object*, Object*);
  int (*query_event)(int, Object*);
  int (*mem_copy_async)(int, int, void*, const void*, std::size_t, Object*, int);
  int (*mem_copy)(int, int, void*, const void*, std::size_t, int);
  int (*mem_move)(int, int, void*, const void*, std::size_t, int);
  int (*mem_alloc)(int, void**, std::size_t);
  int (*mem_release)(int, void*);
  int (*get_address_range)(int, const void*, void**, std::size_t*);
  int (*host_register)(int, void*, std::size_t);
  int (*host_unregister)(int, void*);
  int (*get_device)(int*);
  int (*get_device_pci_attr)(int, Pci*);
  int (*device_can_access_peer)(int*, int, int);
  int (*get_buffer_id)(int, const void*, std::uint64_t*);
};

Module module = {
    check_address, create_stream,   create_event, record_event,  query_event,   copy_later,      copy,
    copy,          allocate,        release,      address_range, register_host, unregister_host, current_device,
    pci_of,        can_access_peer, buffer_id};

Module* start() { return &module; }
void stop(Module*) {}
int open_component() { return opal_success; }

struct Component {
  int mca_version[3];
  char project[16];
  int project_version[3];
  char type[32];
  int type_version[3];
  char name[64];
  int version[3];
  int (*open)();
  int (*close)();
  int (*query)(void**, int*);
  int (*register_parameters)();
  std::int32_t flags;
  char reserved[28];
  std::int32_t checkpoint;
  char reserved_data[32];
  Module* (*start)();
  void (*stop)(Module*);
};
static_assert(offsetof(Component, name) == 0x54);
static_assert(offsetof(Component, open) == 0xa0);
static_assert(offsetof(Component, checkpoint) == 0xe0);
static_assert(offsetof(Component, start) == 0x108);
static_assert(sizeof(Component) == 0x118);

constexpr std::int32_t checkpoint_ready = 2;

template <std::size_t length>
constexpr Component component_named(const char (&name)[length]) {
  Component component = {
      .mca_version = {2, 1, 0},
      .project = "opal",
      .project_version = {5, 0, 0},
      .type = "accelerator",
      .type_version = {1, 0, 0},
      .name = {},
      .version = {5, 0, 0},
      .open = open_component,
      .close = open_component,
      .query = nullptr,
      .register_parameters = open_component,
      .flags = 0,
      .reserved = {},
      .checkpoint = checkpoint_ready,
      .reserved_data = {},
      .start = start,
      .stop = stop,
  };
  for (std::size_t i = 0; i < length; ++i) component.name[i] = name[i];
  return component;
}
constexpr Component cuda = component_named("cuda");
constexpr Component rocm = component_named("rocm");

}  // namespace

extern "C" __attribute__((visibility("default"))) const Component* mca_accelerator_base_static_components[];
const Component* mca_accelerator_base_static_components[] = {&cuda, nullptr};

// The wheel was built without ROCm and answers 0, where a build for the machine answers that it takes its memory. Of
// CUDA it asks the component.
extern "C" __attribute__((visibility("default"))) int MPIX_Query_rocm_support() {
  const Settings& settings = runtime().settings();
  return settings.api == Api::hip && settings.devices > 0 ? 1 : 0;
}

namespace {

__attribute__((constructor)) void name_component() {
  if (read_settings(getenv("DRYFLY_GPU"), {}).api == Api::hip) mca_accelerator_base_static_components[0] = &rocm;
}

}  // namespace
