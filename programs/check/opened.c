// A program that is not linked to MPI: it opens the library that it is given, and asks it for each function.
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (library == NULL) return 1;
  int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(library, "MPI_Init");
  double (*now)(void) = (double (*)(void))dlsym(library, "PMPI_Wtime");
  int (*finalize)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
  init(&argc, &argv);
  const double began = now();
  sleep(1);
  printf("slept %.9f s\n", now() - began);
  return finalize();
}
