// Level Zero on a rank's GPUs: what it shows, memory of each kind, commands whose ends come at virtual instants, and
// memory of another rank of the node. Arguments: how many devices, and how many tiles each of them has; GB of a device;
// what a call, a look at an event, and a copy's latency and step take in us; GB/s to the host, between the first two
// tiles and between the first and the last. Or one: what zeInit answers, and where devices are is printed.
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "level_zero.h"

#define CHECK(condition) REQUIRE(condition, "%s", #condition)

static double call_us, query_us, latency_us, step_us, link_rate, tile_rate, peer_rate;
static const ze_memory_description of_device = {{0x15, NULL}, 0, 0}, of_host = {{0x16, NULL}, 0, 0};

static double now_us(void) { return MPI_Wtime() * 1e6; }

static void took(const char* what, double begin_us, double expected_us) {
  const double us = now_us() - begin_us;
  // What MPI_Wtime costs, and that its double has 52 bits.
  REQUIRE(us > expected_us - 0.05 && us < expected_us + 0.25, "%s took %.3f us and should take %.3f", what, us,
          expected_us);
}

static char* on_device(ze_handle device, size_t bytes) {
  void* pointer = NULL;
  REQUIRE(ze.MemAllocDevice(ze_context, &of_device, bytes, 64, device, &pointer) == 0, "no memory of a device");
  return pointer;
}

static void devices(uint32_t count, uint32_t tiles, uint64_t gibibytes) {
  REQUIRE_EQUAL(ze_device_count, count, "the number of devices");
  for (uint32_t i = 0; i < count; ++i) {
    ze_device_facts facts = {{0x3, NULL}, 0};
    ze_pci_facts pci = {{0x10008, NULL}, 0};
    ze_memory_facts memory = {{0x7, NULL}, 0};
    uint32_t one = 1, subdevices = 0;
    ze_handle below[8];
    CHECK(ze.DeviceGetProperties(ze_devices[i], &facts) == 0 && facts.kind == 1 && facts.vendor == 0x8086);
    CHECK(ze.DeviceGetMemoryProperties(ze_devices[i], &one, &memory) == 0 && one == 1);
    REQUIRE_EQUAL(memory.bytes, gibibytes << 30, "bytes of a device");
    CHECK(ze.DevicePciGetPropertiesExt(ze_devices[i], &pci) == 0 && pci.domain == 0x2000 && pci.bus > 0);
    CHECK(ze.DeviceGetSubDevices(ze_devices[i], &subdevices, NULL) == 0);
    REQUIRE_EQUAL(subdevices, tiles > 1 ? tiles : 0, "tiles of a device");
    CHECK(subdevices == 0 || ze.DeviceGetSubDevices(ze_devices[i], &subdevices, below) == 0);
    for (uint32_t k = 0; k < subdevices; ++k) {
      ze_handle root = NULL;
      CHECK(ze.DeviceGetProperties(below[k], &facts) == 0);
      CHECK(facts.tile == k && (facts.flags & ze_is_subdevice) != 0);
      CHECK(ze.DeviceGetRootDevice(below[k], &root) == 0 && root == ze_devices[i]);
    }
    uint8_t can = 0;
    CHECK(ze.DeviceCanAccessPeer(ze_devices[i], ze_devices[0], &can) == 0 && can == 1);
  }
  CHECK(ze.DeviceGet(NULL, &count, NULL) == ze_null_handle);
  CHECK(ze.DeviceGetProperties(ze_context, NULL) == ze_null_handle);
}

static void memory(void) {
  enum { bytes = 10000 };
  void *device = on_device(ze_devices[0], bytes), *host = NULL, *both = NULL, *base = NULL, *large = NULL;
  ze_allocation_facts facts = {{0x17, NULL}, 0};
  ze_handle at = NULL;
  size_t length = 0;
  char own = 0;
  CHECK(ze.MemAllocHost(ze_context, &of_host, bytes, 0, &host) == 0);
  CHECK(ze.MemAllocShared(ze_context, &of_device, &of_host, bytes, 4096, ze_devices[0], &both) == 0);
  CHECK((uintptr_t)both % 4096 == 0);
  CHECK(ze.MemGetAllocProperties(ze_context, (char*)device + 5, &facts, &at) == 0);
  CHECK(facts.kind == ze_of_device && at == ze_devices[0] && facts.id != 0);
  const uint64_t id = facts.id;
  CHECK(ze.MemGetAllocProperties(ze_context, host, &facts, NULL) == 0 && facts.kind == ze_of_host && facts.id != id);
  CHECK(ze.MemGetAllocProperties(ze_context, both, &facts, NULL) == 0 && facts.kind == ze_of_both);
  CHECK(ze.MemGetAllocProperties(ze_context, &own, &facts, &at) == 0 && facts.kind == 0 && at == NULL);
  CHECK(ze.MemGetAddressRange(ze_context, (char*)device + 77, &base, &length) == 0);
  CHECK(base == device && length == bytes);
  CHECK(ze.MemAllocDevice(ze_context, &of_device, (size_t)1 << 38, 0, ze_devices[0], &large) ==
        ze_out_of_device_memory);
  CHECK(ze.MemFree(ze_context, device) == 0 && ze.MemFree(ze_context, device) == ze_invalid_argument);
  CHECK(ze.MemFree(ze_context, host) == 0 && ze.MemFree(ze_context, both) == 0);
  device = on_device(ze_devices[0], bytes);  // the same address, and another allocation
  CHECK(ze.MemGetAllocProperties(ze_context, device, &facts, NULL) == 0 && facts.id != id);
  CHECK(ze.MemFree(ze_context, device) == 0);
}

static double copy_us(size_t bytes, double rate) { return latency_us + step_us + (double)bytes / rate / 1e3; }

static void immediate(ze_handle event) {
  enum { bytes = 5400000 };
  char* device = on_device(ze_devices[0], bytes);
  char* host = malloc(bytes);
  ze_handle list = ze_immediate_list(ze_devices[0], 0);
  memset(host, 3, bytes);
  memset(device, 1, bytes);
  CHECK(ze.EventQueryStatus(event) == ze_not_ready);
  double begin = now_us();
  CHECK(ze.CommandListAppendMemoryCopy(list, device, host, bytes, event, 0, NULL) == 0);
  took("putting a copy into a list", begin, call_us);
  CHECK(ze.EventQueryStatus(event) == ze_not_ready && device[bytes - 1] == 1);
  CHECK(ze.EventHostSynchronize(event, 10000) == ze_not_ready);
  took("looking twice, and waiting for 10 us", begin, call_us + 2 * query_us + 10);
  CHECK(ze.CommandListHostSynchronize(list, 0) == ze_not_ready && device[bytes - 1] == 1);
  CHECK(ze.EventHostSynchronize(event, UINT64_MAX) == 0 && device[bytes - 1] == 3);
  took("a copy", begin, call_us + copy_us(bytes, link_rate));
  CHECK(ze.EventQueryStatus(event) == 0 && ze.CommandListHostSynchronize(list, 0) == 0);
  CHECK(ze.EventHostReset(event) == 0 && ze.EventQueryStatus(event) == ze_not_ready);
  CHECK(ze.EventHostSignal(event) == 0 && ze.EventQueryStatus(event) == 0 && ze.EventHostReset(event) == 0);
  // What nothing signals cannot be waited for, by a device.
  CHECK(ze.CommandListAppendWaitOnEvents(list, 1, &event) == ze_invalid_synchronization_object);
  CHECK(ze.CommandListClose(list) == 0 && ze.CommandListDestroy(list) == 0 && ze.CommandListDestroy(NULL) != 0);
  list = ze_immediate_list(ze_devices[0], 1);
  begin = now_us();
  CHECK(ze.CommandListAppendMemoryCopy(list, host, device, 8, NULL, 0, NULL) == 0);
  took("a copy in a synchronous list", begin, call_us + copy_us(8, link_rate));
  CHECK(ze.CommandListDestroy(list) == 0 && ze.MemFree(ze_context, device) == 0);
  free(host);
}

// A list is filled and closed, and does nothing before a queue executes it; then each time.
static void queued(ze_handle event) {
  enum { count = 1000 };
  static const ze_list_description list_description = {{0xf, NULL}, 0, 0}, fence_description = {{0x13, NULL}, 0, 0};
  static const ze_queue_description queue_description = {{0xe, NULL}, 1, 0, 0, 2, 0};
  uint32_t* from = (uint32_t*)on_device(ze_devices[0], count * sizeof *from);
  uint32_t *to = calloc(count, sizeof *to), pattern[2] = {0x12345678, 0x9abcdef0};
  ze_handle list = NULL, queue = NULL, fence = NULL;
  CHECK(ze.CommandListCreate(ze_context, ze_devices[0], &list_description, &list) == 0);
  CHECK(ze.CommandQueueCreate(ze_context, ze_devices[0], &queue_description, &queue) == 0);
  CHECK(ze.FenceCreate(queue, &fence_description, &fence) == 0 && ze.FenceQueryStatus(fence) == ze_not_ready);
  CHECK(ze.CommandListAppendMemoryFill(list, from, pattern, sizeof pattern, count * sizeof *from, event, 0, NULL) == 0);
  CHECK(ze.CommandListAppendBarrier(list, NULL, 0, NULL) == 0);
  CHECK(ze.CommandListAppendMemoryCopy(list, to, from, count * sizeof *to, NULL, 1, &event) == 0);
  CHECK(ze.CommandQueueExecuteCommandLists(queue, 1, &list, fence) == ze_invalid_argument);  // it is not closed
  CHECK(ze.CommandListClose(list) == 0 && ze.EventQueryStatus(event) == ze_not_ready && to[0] == 0);
  for (int i = 0; i < 2; ++i) {
    memset(to, 0, count * sizeof *to);
    CHECK(ze.CommandQueueExecuteCommandLists(queue, 1, &list, fence) == 0 && to[1] == 0);
    CHECK(ze.FenceQueryStatus(fence) == ze_not_ready && ze.CommandQueueSynchronize(queue, 0) == ze_not_ready);
    CHECK(ze.FenceHostSynchronize(fence, UINT64_MAX) == 0 && ze.EventQueryStatus(event) == 0);
    CHECK(ze.CommandQueueSynchronize(queue, UINT64_MAX) == 0 && ze.FenceReset(fence) == 0);
    for (int k = 0; k < count; ++k) CHECK(to[k] == pattern[k % 2]);
  }
  CHECK(ze.CommandListReset(list) == 0 && ze.CommandListClose(list) == 0);
  CHECK(ze.CommandQueueExecuteCommandLists(queue, 1, &list, NULL) == 0 && ze.CommandQueueSynchronize(queue, 0) == 0);
  CHECK(ze.FenceDestroy(fence) == 0 && ze.CommandQueueDestroy(queue) == 0 && ze.CommandListDestroy(list) == 0);
  CHECK(ze.MemFree(ze_context, from) == 0 && ze.EventHostReset(event) == 0);
  free(to);
}

// The second list's copy begins when the first's is over.
static void between_lists(ze_handle event) {
  enum { bytes = 2700000 };
  char *first = on_device(ze_devices[0], bytes), *second = on_device(ze_devices[0], bytes);
  char* host = malloc(bytes);
  ze_handle in = ze_immediate_list(ze_devices[0], 0), out = ze_immediate_list(ze_devices[0], 0);
  memset(host, 9, bytes);
  const double begin = now_us();
  CHECK(ze.CommandListAppendMemoryCopy(in, first, host, bytes, event, 0, NULL) == 0);
  CHECK(ze.CommandListAppendMemoryCopy(out, host, second, bytes, NULL, 1, &event) == 0);
  CHECK(ze.CommandListHostSynchronize(out, UINT64_MAX) == 0);
  took("two copies, one for the other", begin, call_us + latency_us + 2 * (step_us + bytes / link_rate / 1e3));
  CHECK(first[7] == 9 && ze.EventHostReset(event) == 0);
  CHECK(ze.CommandListDestroy(in) == 0 && ze.CommandListDestroy(out) == 0);
  CHECK(ze.MemFree(ze_context, first) == 0 && ze.MemFree(ze_context, second) == 0);
  free(host);
}

static void between_devices(ze_handle one, ze_handle other, double rate) {
  enum { bytes = 3000000 };
  char *from = on_device(one, bytes), *to = on_device(other, bytes);
  ze_handle list = ze_immediate_list(one, 1);
  memset(from, 6, bytes);
  const double begin = now_us();
  CHECK(ze.CommandListAppendMemoryCopy(list, to, from, bytes, NULL, 0, NULL) == 0);
  took("a copy between two tiles", begin, call_us + copy_us(bytes, rate));
  CHECK(to[bytes - 1] == 6 && ze.CommandListDestroy(list) == 0);
  CHECK(ze.MemFree(ze_context, from) == 0 && ze.MemFree(ze_context, to) == 0);
}

// As MPI libraries do it: the descriptor in the handle is fetched from its process, and put into a handle of one's own.
static void of_another_rank(void) {
  enum { bytes = 100000, offset = 300 };
  struct {
    int process;
    ze_ipc_handle handle;
  } own, theirs;
  char *given = on_device(ze_devices[my_rank], bytes), *host = malloc(bytes);
  void* opened = NULL;
  ze_ipc_handle again;
  ze_handle list = ze_immediate_list(ze_devices[my_rank], 1);
  memset(given, 10 + my_rank, bytes);
  memset(&own, 0, sizeof own);
  own.process = getpid();
  CHECK(ze.MemGetIpcHandle(ze_context, given, &own.handle) == 0);
  CHECK(ze.MemGetIpcHandle(ze_context, given, &again) == 0 && memcmp(&again, &own.handle, sizeof again) == 0);
  MPI_Sendrecv(&own, sizeof own, MPI_BYTE, 1 - my_rank, 0, &theirs, sizeof theirs, MPI_BYTE, 1 - my_rank, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int descriptor = -1;
  memcpy(&descriptor, &theirs.handle, sizeof descriptor);
  const int process = (int)syscall(SYS_pidfd_open, theirs.process, 0);
  CHECK(process >= 0);
  descriptor = (int)syscall(SYS_pidfd_getfd, process, descriptor, 0);
  CHECK(descriptor >= 0);
  memset(&theirs.handle, 0, sizeof theirs.handle);
  memcpy(&theirs.handle, &descriptor, sizeof descriptor);
  CHECK(ze.MemOpenIpcHandle(ze_context, ze_devices[my_rank], theirs.handle, 0, &opened) == 0);
  ze_allocation_facts facts = {{0x17, NULL}, 0};
  ze_handle at = NULL;
  CHECK(ze.MemGetAllocProperties(ze_context, opened, &facts, &at) == 0 && facts.kind == ze_of_device);
  ze_handle root = NULL;
  CHECK(ze.DeviceGetRootDevice(at, &root) == 0 && (at == ze_devices[1 - my_rank] || root == ze_devices[1 - my_rank]));
  CHECK(ze.CommandListAppendMemoryCopy(list, host, (char*)opened + offset, 10, NULL, 0, NULL) == 0);
  CHECK(host[9] == 10 + 1 - my_rank);
  MPI_Barrier(MPI_COMM_WORLD);
  memset(host, 77, bytes);
  CHECK(ze.CommandListAppendMemoryCopy(list, (char*)opened + offset, host, 10, NULL, 0, NULL) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(given[offset + 9] == 77 && given[offset + 10] == 10 + my_rank);
  CHECK(ze.MemCloseIpcHandle(ze_context, opened) == 0);
  CHECK(ze.MemPutIpcHandle(ze_context, own.handle) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(ze.MemFree(ze_context, given) == 0);
  CHECK(ze.MemOpenIpcHandle(ze_context, ze_devices[my_rank], own.handle, 0, &opened) == ze_invalid_argument);
  close(descriptor);
  close(process);
  free(host);
}

static void what_is_not_there(void) {
  void* address = NULL;
  ze_handle made = NULL;
  CHECK(ze.ModuleCreate(ze_context, ze_devices[0], NULL, &made, NULL) == ze_unsupported);
  CHECK(ze.ImageCreate(ze_context, ze_devices[0], NULL, &made) == ze_unsupported);
  CHECK(ze.DriverGetExtensionFunctionAddress(ze_driver, "zexMemGetIpcHandles", &address) == 0 && address != NULL);
  CHECK(ze.DriverGetExtensionFunctionAddress(ze_driver, "zexNobody", &address) == ze_unsupported);
}

// Of the devices that each rank sees, a line for each rank.
static void addresses(void) {
  enum { length = 256 };
  char own[length] = "", *all = malloc((size_t)length * (size_t)rank_count);
  for (uint32_t i = 0; i < ze_device_count; ++i) {
    ze_pci_facts at = {{0x10008, NULL}, 0};
    char text[24];
    CHECK(ze.DevicePciGetPropertiesExt(ze_devices[i], &at) == 0);
    snprintf(text, sizeof text, " %04x:%02x:%02x.%x", at.domain & 0xffff, at.bus & 0xff, at.device & 0xff,
             at.function & 0xf);
    strcat(own, text);
  }
  MPI_Gather(own, length, MPI_CHAR, all, length, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int rank = 0; my_rank == 0 && rank < rank_count; ++rank) printf("rank %d:%s\n", rank, all + rank * length);
  free(all);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  const int answer = load_level_zero();
  if (argc == 2) {
    REQUIRE_EQUAL(answer, atoi(argv[1]), "what zeInit answers");
    addresses();
    return check_end("gpu_level_zero");
  }
  REQUIRE(argc == 11 && answer == 0, "ten arguments and devices are needed");
  call_us = atof(argv[4]), query_us = atof(argv[5]), latency_us = atof(argv[6]), step_us = atof(argv[7]);
  link_rate = atof(argv[8]), tile_rate = atof(argv[9]), peer_rate = atof(argv[10]);
  static const ze_pool_description pool_description = {{0x10, NULL}, 1, 4};
  static const ze_event_description event_description = {{0x11, NULL}, 3, 0, 0};
  ze_handle pool = NULL, event = NULL;
  devices((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]), (uint64_t)atoi(argv[3]));
  memory();
  CHECK(ze.EventPoolCreate(ze_context, &pool_description, 0, NULL, &pool) == 0);
  CHECK(ze.EventCreate(pool, &event_description, &event) == 0);
  immediate(event);
  queued(event);
  between_lists(event);
  ze_handle second = ze_devices[1];
  uint32_t tiles = 2;
  ze_handle below[2];
  if (atoi(argv[2]) == 2 && ze.DeviceGetSubDevices(ze_devices[0], &tiles, below) == 0) second = below[1];
  between_devices(ze_devices[0], second, tile_rate);
  between_devices(ze_devices[0], ze_devices[ze_device_count - 1], peer_rate);
  what_is_not_there();
  if (rank_count == 2) of_another_rank();
  CHECK(ze.EventDestroy(event) == 0 && ze.EventPoolDestroy(pool) == 0 && ze.ContextDestroy(ze_context) == 0);
  return check_end("gpu_level_zero");
}
