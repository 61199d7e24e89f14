#include "preload/launcher_line.hpp"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace dryfly::preload {

namespace {

void send_line(const char* line) {
  const char* name = getenv("DRYFLY_LAUNCH");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = name != nullptr ? strlen(name) : 0;
  if (length == 0 || length > sizeof address.sun_path - 2) return;
  memcpy(address.sun_path + 1, name, length);
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  // If dryfly-launch is gone, this process ends soon too.
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), bytes) == 0) {
    send(connection, line, strlen(line), MSG_NOSIGNAL);
  }
  close(connection);
}

}  // namespace

void tell_launcher(const char* word) {
  const char* rank = getenv("DRYFLY_RANK");
  char line[64];
  snprintf(line, sizeof line, "%s %s\n", word, rank != nullptr ? rank : "");
  send_line(line);
}

void tell_launcher(const char* word, int code) {
  const char* rank = getenv("DRYFLY_RANK");
  char line[64];
  snprintf(line, sizeof line, "%s %s %d\n", word, rank != nullptr ? rank : "", code);
  send_line(line);
}

void tell_pmi_server(PmiWord word) {
  const char* const text = getenv("PMI_FD");
  if (text == nullptr || getenv("DRYFLY_RANK") == nullptr || getenv("DRYFLY_LAUNCH") != nullptr) return;
  static constinit struct stat before{};
  const int descriptor = atoi(text);
  struct stat now{};
  if (fstat(descriptor, &now) != 0) return;
  if (word == PmiWord::watched) before = now;
  // Who has closed it may have opened something else by that number.
  if (now.st_dev != before.st_dev || now.st_ino != before.st_ino) return;
  const char* const line = word == PmiWord::watched ? "cmd=watched\n" : "cmd=left\n";
  send(descriptor, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace dryfly::preload
