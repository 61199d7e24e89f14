#include "rank/attachment.hpp"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

namespace dryfly::rank {

namespace {

// Where a process belongs, as its environment says.
struct Wanted {
  const char* name = nullptr;  // of the socket
  std::uint32_t rank = wire::any_rank;
  std::uint32_t node = 0;
  bool served() const { return rank == wire::any_rank; }
};

// For messages.
struct Who {
  char text[32] = "this process";
  explicit Who(const Wanted& wanted) {
    if (!wanted.served()) snprintf(text, sizeof text, "rank %u", wanted.rank);
  }
};

bool read_number(const char* variable, unsigned long limit, std::uint32_t& number) {
  const char* text = getenv(variable);
  if (text == nullptr || *text == 0) return false;
  char* end = nullptr;
  const unsigned long value = strtoul(text, &end, 10);
  if (*end != 0 || value >= limit) return false;
  number = static_cast<std::uint32_t>(value);
  return true;
}

bool read_rank(std::uint32_t& rank) {
  return read_number(getenv("DRYFLY_RANK") != nullptr ? "DRYFLY_RANK" : "PMI_RANK", wire::rank_count_max, rank);
}

bool read_environment(Wanted& wanted) {
  wanted.name = getenv("DRYFLY_CHANNEL");
  if (wanted.name != nullptr && *wanted.name != 0) return read_rank(wanted.rank);
  wanted.name = getenv("DRYFLY_FABRIC");
  return wanted.name != nullptr && *wanted.name != 0 && read_number("DRYFLY_NODE", 0xffffffffU, wanted.node);
}

int note_library(dl_phdr_info* info, std::size_t, void* data) {
  auto* hello = static_cast<wire::Hello*>(data);
  const char* path = info->dlpi_name;
  if (path == nullptr || *path == 0) return 0;
  const char* slash = strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  const bool mpi = strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpi_abi.so", 13) == 0 ||
                   strncmp(name, "libmpich.so", 11) == 0;
  if (mpi && hello->libmpi_path[0] == 0) strncpy(hello->libmpi_path, path, sizeof hello->libmpi_path - 1);
  if (strncmp(name, "libfabric", 9) == 0 && hello->libfabric_path[0] == 0) {
    strncpy(hello->libfabric_path, path, sizeof hello->libfabric_path - 1);
  }
  return 0;
}

void fill_hello(const Wanted& wanted, wire::Hello& hello) {
  hello.magic = wire::segment_magic;
  hello.version = wire::version;
  hello.rank = wanted.rank;
  hello.node = wanted.node;
  hello.pid = static_cast<std::uint32_t>(getpid());
  dl_iterate_phdr(note_library, &hello);
  const ssize_t got = readlink("/proc/self/exe", hello.program_path, sizeof hello.program_path - 1);
  if (got < 0) hello.program_path[0] = 0;
}

// Greets, and is answered with the descriptor of the segment; -1 if not.
int receive_welcome(int socket, wire::Welcome& welcome) {
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL) != static_cast<ssize_t>(sizeof welcome)) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  int descriptor = -1;
  memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}

// The socket; -1 if the conductor is not there.
int connect_to(const Wanted& wanted, const wire::Hello& hello) {
  const Who who(wanted);
  const char* where = wanted.served() ? "fabric; is its \"dryfly serve\" still there?" : "run";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = strlen(wanted.name);
  if (length > sizeof address.sun_path - 2) return -1;
  memcpy(address.sun_path + 1, wanted.name, length);
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (made < 0 || ::connect(made, reinterpret_cast<sockaddr*>(&address), address_bytes) != 0) {
    fprintf(stderr, "dryfly: %s cannot reach its %s (channel %s: %s)\n", who.text, where, wanted.name, strerror(errno));
    if (made >= 0) close(made);
    return -1;
  }
  // Lets the conductor and the other ranks reach large payloads where the Yama module restricts that to relatives.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (send(made, &hello, sizeof hello, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello)) {
    fprintf(stderr, "dryfly: %s cannot greet its %s (%s)\n", who.text, where, strerror(errno));
    close(made);
    return -1;
  }
  return made;
}

// Takes the welcome, and maps the segment that comes with it.
bool enter(const Wanted& wanted, Attachment& made) {
  const Who who(wanted);
  const wire::Welcome& welcome = made.welcome;
  const int segment = receive_welcome(made.socket, made.welcome);
  const bool same_version = welcome.magic == wire::segment_magic && welcome.version == wire::version;
  if (segment < 0 || !same_version || welcome.accepted == 0) {
    fprintf(stderr, "dryfly: %s was not accepted: %s\n", who.text,
            welcome.reason[0] != 0 ? welcome.reason : "dryfly there is of another version");
    if (segment >= 0) close(segment);
    return false;
  }
  void* mapped = mmap(nullptr, welcome.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment, 0);
  if (mapped == MAP_FAILED) {
    close(segment);
    fprintf(stderr, "dryfly: %s cannot map the segment of %llu bytes: %s\n", who.text,
            static_cast<unsigned long long>(welcome.segment_bytes), strerror(errno));
    return false;
  }
  made.base = static_cast<char*>(mapped);
  made.segment = segment;
  return true;
}

}  // namespace

int Attachment::segment_descriptor() const {
  struct stat status{};
  if (segment < 0 || fstat(segment, &status) != 0) return -1;
  const bool unchanged = S_ISREG(status.st_mode) && status.st_nlink == 0 &&
                         static_cast<std::uint64_t>(status.st_size) == welcome.segment_bytes;
  return unchanged ? segment : -1;
}

bool attach(Attachment& made) {
  Wanted wanted;
  if (!read_environment(wanted)) return false;
  // Complete before the connection is made: the conductor waits at the door for what follows it.
  wire::Hello hello{};
  fill_hello(wanted, hello);
  made.socket = connect_to(wanted, hello);
  if (made.socket < 0) return false;
  if (!enter(wanted, made)) {
    close(made.socket);
    return false;
  }
  made.header = reinterpret_cast<wire::SegmentHeader*>(made.base);
  char* area = made.base + made.header->rank_area_offset + made.header->rank_area_stride * made.welcome.rank;
  made.page = reinterpret_cast<wire::RankPage*>(area);
  return true;
}

}  // namespace dryfly::rank
