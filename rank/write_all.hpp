// All of a buffer into a file, however often the kernel takes a part. Loaded into user programs: libc only.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <cstddef>

namespace dryfly::rank {

// False: it does not fit, and errno says why.
inline bool write_all(int file, const void* bytes, std::size_t length) {
  const char* at = static_cast<const char*>(bytes);
  while (length > 0) {
    const ssize_t written = write(file, at, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    length -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace dryfly::rank
