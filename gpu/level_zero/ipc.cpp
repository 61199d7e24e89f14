#include "gpu/level_zero/ipc.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/level_zero/calls.hpp"
#include "gpu/level_zero/extensions.hpp"
#include "gpu/level_zero/objects.hpp"
#include "gpu/shared.hpp"

namespace dryfly::gpu::level_zero {

namespace {

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

}  // namespace

void forget_descriptor(std::uint64_t allocation) { shared.forget(allocation); }

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

int zexMemGetIpcHandles(Context* context, const void* pointer, std::uint32_t* count, IpcHandle* to) {
  if (!is(context)) return invalid_null_handle;
  int code = success;
  const int listed = list_out(count, to, 1, [&](IpcHandle& each, std::uint32_t) { code = show(pointer, &each); });
  return listed != success ? listed : code;
}
int zexMemOpenIpcHandles(Context* context, Device* device, std::uint32_t count, IpcHandle* handles, std::uint32_t flags,
                         void** to) {
  if (count != 1 || handles == nullptr) return invalid_argument;
  return zeMemOpenIpcHandle(context, device, handles[0], flags, to);
}

}  // namespace dryfly::gpu::level_zero
