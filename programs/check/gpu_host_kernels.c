// Kernels of Level Zero as functions of this program (include/dryfly/level_zero.h): order among the commands of lists,
// arguments, and times by the work that is announced. Arguments: what a call, a look at
// an event and a kernel's launch take in us; TF/s in FP64 and TB/s of memory of the first device.
#include "../../include/dryfly/level_zero.h"
#include "../../include/dryfly/work.h"
#include "check.h"
#include "level_zero.h"

#define CHECK(condition) REQUIRE(condition, "%s", #condition)
enum { count = 1000, invalid_list_type = 0x78000019 };

typedef struct {
  double* values;
  double factor;
} scaling;

static dryfly_append_host_kernel append;
static double call_us, query_us, launch_us, fp64, memory_rate;
static const void* last_argument;
static int calls;

static double now_us(void) { return MPI_Wtime() * 1e6; }

static void took(const char* what, double begin_us, double expected_us) {
  const double us = now_us() - begin_us;
  // What MPI_Wtime costs, and that its double has 52 bits.
  REQUIRE(us > expected_us - 0.05 && us < expected_us + 0.25, "%s took %.3f us and should take %.3f", what, us,
          expected_us);
}

static void scale(void* argument) {
  const scaling* what = argument;
  CHECK((uintptr_t)argument % 64 == 0 && argument != last_argument);
  last_argument = argument;
  for (int i = 0; i < count; ++i) what->values[i] *= what->factor;
}
static void count_call(void* argument) {
  CHECK(argument == NULL);
  ++calls;
}

static double* doubles(int on_device) {
  static const ze_memory_description memory = {{0x15, NULL}, 0, 0}, of_host = {{0x16, NULL}, 0, 0};
  void* pointer = NULL;
  if (on_device)
    CHECK(ze.MemAllocDevice(ze_context, &memory, count * sizeof(double), 64, ze_devices[0], &pointer) == 0);
  if (!on_device) CHECK(ze.MemAllocHost(ze_context, &of_host, count * sizeof(double), 64, &pointer) == 0);
  return pointer;
}

// It comes back at once, does nothing before its instant, and is ordered by its list and by events of others.
static void in_order(double* host, double* device, ze_handle event) {
  scaling what = {device, 3};
  ze_handle kernels = ze_immediate_list(ze_devices[0], 0), copies = ze_immediate_list(ze_devices[0], 0);
  for (int i = 0; i < count; ++i) host[i] = i;
  CHECK(ze.CommandListAppendMemoryCopy(kernels, device, host, count * sizeof(double), NULL, 0, NULL) == 0);
  CHECK(ze.CommandListHostSynchronize(kernels, UINT64_MAX) == 0 && device[9] == 9);
  double begin = now_us();
  dryfly_kernel_announce_work(DRYFLY_FP64, 1000000000, 50);
  CHECK(append(kernels, scale, &what, sizeof what, NULL, 0, NULL) == 0);
  took("appending a kernel", begin, call_us);
  what.factor = 5;  // the first one's argument is a copy
  dryfly_kernel_announce_work(DRYFLY_FP64, 10, 70000000);
  dryfly_kernel_announce_work(DRYFLY_FP64, 0, 30000000);
  CHECK(append(kernels, scale, &what, sizeof what, event, 0, NULL) == 0);
  CHECK(ze.CommandListAppendMemoryCopy(copies, host, device, count * sizeof(double), NULL, 1, &event) == 0);
  CHECK(device[9] == 9 && ze.EventQueryStatus(event) == ze_not_ready);
  CHECK(ze.CommandListHostSynchronize(kernels, UINT64_MAX) == 0);
  took("a kernel of operations and one of bytes", begin, call_us + 2 * launch_us + 1e3 / fp64 + 1e2 / memory_rate);
  CHECK(device[9] == 9 * 15 && ze.EventQueryStatus(event) == 0 && host[9] == 9);
  CHECK(ze.CommandListHostSynchronize(copies, UINT64_MAX) == 0 && host[9] == 9 * 15);
  begin = now_us();
  CHECK(append(kernels, count_call, NULL, 0, NULL, 1, &event) == 0 && calls == 0);
  CHECK(ze.CommandListHostSynchronize(kernels, UINT64_MAX) == 0 && calls == 1);
  took("a kernel behind an event", begin, call_us + query_us + launch_us);
  CHECK(ze.EventHostReset(event) == 0);
  CHECK(append(kernels, count_call, NULL, 0, NULL, 1, &event) == ze_invalid_synchronization_object && calls == 1);
  CHECK(ze.CommandListDestroy(kernels) == 0 && ze.CommandListDestroy(copies) == 0);
}

// A list keeps the argument and the work, and executes it each time anew.
static void executed_twice(double* device, ze_handle event) {
  static const ze_list_description list_description = {{0xf, NULL}, 0, 0};
  static const ze_queue_description queue_description = {{0xe, NULL}, 0, 0, 0, 2, 0};
  scaling what = {device, 2};
  ze_handle list = NULL, queue = NULL;
  for (int i = 0; i < count; ++i) device[i] = i;
  CHECK(ze.CommandListCreate(ze_context, ze_devices[0], &list_description, &list) == 0);
  CHECK(ze.CommandQueueCreate(ze_context, ze_devices[0], &queue_description, &queue) == 0);
  dryfly_kernel_announce_work(DRYFLY_FP64, 2000000000, 0);
  CHECK(append(list, scale, &what, sizeof what, event, 0, NULL) == 0);
  CHECK(append(list, count_call, NULL, 0, NULL, 0, NULL) == 0);
  what.factor = 100;
  CHECK(append(list, NULL, &what, sizeof what, NULL, 0, NULL) == ze_null_pointer);
  CHECK(append(list, scale, NULL, sizeof what, NULL, 0, NULL) == ze_null_pointer);
  CHECK(ze.CommandListClose(list) == 0 &&
        append(list, scale, &what, sizeof what, NULL, 0, NULL) == ze_invalid_argument);
  calls = 0;
  for (int i = 0; i < 2; ++i) {
    const double begin = now_us();
    CHECK(ze.CommandQueueExecuteCommandLists(queue, 1, &list, NULL) == 0);
    CHECK(ze.CommandQueueSynchronize(queue, UINT64_MAX) == 0);
    took("a list of two kernels", begin, call_us + 2 * launch_us + 2e3 / fp64);
    CHECK(device[9] == 9 * (i == 0 ? 2 : 4) && calls == i + 1);
  }
  // What goes with the list was appended and is executed no more.
  CHECK(ze.CommandListReset(list) == 0 && append(list, scale, &what, sizeof what, NULL, 0, NULL) == 0);
  CHECK(ze.CommandListDestroy(list) == 0 && ze.CommandQueueDestroy(queue) == 0 && device[9] == 9 * 4);
}

static void what_is_refused(double* device) {
  static const ze_list_description copies_alone = {{0xf, NULL}, 1, 0};
  scaling what = {device, 2};
  ze_handle list = NULL;
  CHECK(append(NULL, scale, &what, sizeof what, NULL, 0, NULL) == ze_null_handle);
  CHECK(append(ze_context, scale, &what, sizeof what, NULL, 0, NULL) == ze_null_handle);
  CHECK(ze.CommandListCreate(ze_context, ze_devices[0], &copies_alone, &list) == 0);
  CHECK(append(list, scale, &what, sizeof what, NULL, 0, NULL) == invalid_list_type);
  CHECK(ze.CommandListDestroy(list) == 0);
}

int main(int argc, char** argv) {
  static const ze_pool_description pool_description = {{0x10, NULL}, 1, 4};
  static const ze_event_description event_description = {{0x11, NULL}, 3, 0, 0};
  void* function = NULL;
  ze_handle pool = NULL, event = NULL;
  check_begin(&argc, &argv);
  REQUIRE(argc == 6 && load_level_zero() == 0, "five arguments and devices are needed");
  call_us = atof(argv[1]), query_us = atof(argv[2]), launch_us = atof(argv[3]);
  fp64 = atof(argv[4]), memory_rate = atof(argv[5]);
  CHECK(ze.DriverGetExtensionFunctionAddress(ze_driver, DRYFLY_APPEND_HOST_KERNEL, &function) == 0);
  memcpy(&append, &function, sizeof append);
  CHECK(ze.EventPoolCreate(ze_context, &pool_description, 0, NULL, &pool) == 0);
  CHECK(ze.EventCreate(pool, &event_description, &event) == 0);
  double *host = doubles(0), *device = doubles(1);
  in_order(host, device, event);
  executed_twice(device, event);
  what_is_refused(device);
  CHECK(ze.MemFree(ze_context, host) == 0 && ze.MemFree(ze_context, device) == 0);
  CHECK(ze.EventDestroy(event) == 0 && ze.EventPoolDestroy(pool) == 0);
  return check_end("gpu_host_kernels");
}
