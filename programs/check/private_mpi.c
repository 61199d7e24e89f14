/* An MPI that is linked into the program, as far as its process manager sees of one: it begins and waits for the
 * others. Its functions are static, and so are not found by name. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void ask(int launcher, const char* line, int length) {
  char answer[256];
  if (write(launcher, line, (size_t)length) != length || read(launcher, answer, sizeof answer) <= 0) exit(9);
}

int main(void) {
  const char* launcher = getenv("PMI_FD");
  if (launcher == NULL) return 8;
  ask(atoi(launcher), "cmd=init pmi_version=1 pmi_subversion=1\n", 40);
  ask(atoi(launcher), "cmd=barrier_in\n", 15);
  ask(atoi(launcher), "cmd=finalize\n", 13);
  puts("ran in real time");
  return 0;
}
