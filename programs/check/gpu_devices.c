// Which devices each rank sees, by their addresses on PCI, as the runtime and Open MPI's component have them. Prints a
// line for each rank.
#include "check.h"
#include "cudart.h"

struct address {
  unsigned short domain;
  unsigned char bus, device, function;
};

struct accelerator {
  void* others[14];
  int (*pci)(int, struct address*);
};

int main(int argc, char** argv) {
  enum { length = 256 };
  char own[length] = "";
  check_begin(&argc, &argv);
  load_cuda();
  const struct accelerator* accelerator = dlsym(RTLD_DEFAULT, "opal_accelerator");
  int devices = 0, found = -1;
  cuda.count(&devices);
  for (int device = 0; device < devices; ++device) {
    char text[16];
    struct address seen;
    int bus = 0;
    CHECK(cuda.pci(text, sizeof text, device) == 0);
    CHECK(cuda.at_pci(&found, text) == 0 && found == device);
    CHECK(cuda.attribute(&bus, cuda.pci_bus, device) == 0);
    CHECK(accelerator != NULL && accelerator->pci(device, &seen) == 0);
    char again[32];
    snprintf(again, sizeof again, "%04x:%02x:%02x.%x", seen.domain, seen.bus, seen.device, seen.function);
    CHECK(strcmp(text, again) == 0 && seen.bus == bus);
    strcat(strcat(own, " "), text);
  }
  CHECK(cuda.at_pci(&found, "0000:00:00.0") != 0);
  char* all = malloc((size_t)length * (size_t)rank_count);
  MPI_Gather(own, length, MPI_CHAR, all, length, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int rank = 0; my_rank == 0 && rank < rank_count; ++rank) printf("rank %d:%s\n", rank, all + rank * length);
  free(all);
  return check_end("gpu_devices");
}
