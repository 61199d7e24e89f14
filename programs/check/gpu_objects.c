// Streams and events that Open MPI makes of a GPU and releases: far more of them, one after the other, than a process
// may have at a time. As Open MPI does it, by its table of functions for accelerators and its classes' destructors.
#include "check.h"
#include "cudart.h"

struct class {
  const char* name;
  struct class* parent;
  void (*construct)(void*);
  void (*destruct)(void*);
  int initialized, depth;
  void (**constructors)(void*);
  void (**destructors)(void*);
};

struct object {
  struct class* class;
  int references;
  void* held;
};

struct accelerator {
  void* check_address;
  int (*create_stream)(int, struct object**);
  int (*create_event)(int, struct object**);
  int (*record)(int, struct object*, struct object*);
};

static void release(struct object* object) {
  for (void (**each)(void*) = object->class->destructors; *each != NULL; ++each) (*each)(object);
  free(object);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  load_cuda();
  const struct accelerator* accelerator = dlsym(RTLD_DEFAULT, "opal_accelerator");
  CHECK(accelerator != NULL);
  struct object *stream = NULL, *event = NULL;
  void* held = NULL;
  for (int i = 0; i < 70000; ++i) {
    CHECK(accelerator->create_event(0, &event) == 0);
    release(event);
  }
  for (int i = 0; i < 2000; ++i) {
    CHECK(accelerator->create_stream(0, &stream) == 0);
    CHECK(cuda.stream_query(stream->held) == 0);
    held = stream->held;
    release(stream);
    CHECK(cuda.stream_query(held) != 0);
  }
  CHECK(accelerator->create_stream(0, &stream) == 0 && accelerator->create_event(0, &event) == 0);
  CHECK(accelerator->record(0, event, stream) == 0);
  return check_end("gpu_objects");
}
