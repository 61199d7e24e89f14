// How a process joins its run, or a served fabric: the one channel of the process, the greeting, the segment, and what
// a child after fork has of it.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
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

#include "rank/channel.hpp"

namespace dryfly::wire {

namespace {

char* channel_memory_owner = nullptr;  // not null: the channel below is alive
alignas(Channel) char channel_memory[sizeof(Channel)];

void after_fork_in_child();

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
  return read_number(getenv("DRYFLY_RANK") != nullptr ? "DRYFLY_RANK" : "PMI_RANK", rank_count_max, rank);
}

int note_library(dl_phdr_info* info, std::size_t, void* data) {
  auto* hello = static_cast<Hello*>(data);
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

int receive_welcome(int socket, Welcome& welcome) {
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

}  // namespace

Channel* Channel::get() { return reinterpret_cast<Channel*>(channel_memory_owner); }

Channel* Channel::attach() {
  if (get() != nullptr) return get();
  const char* name = getenv("DRYFLY_CHANNEL");
  std::uint32_t rank = any_rank;
  std::uint32_t node = 0;
  if (name != nullptr && *name != 0) {
    if (!read_rank(rank)) return nullptr;
  } else {
    name = getenv("DRYFLY_FABRIC");
    if (name == nullptr || *name == 0 || !read_number("DRYFLY_NODE", 0xffffffffU, node)) return nullptr;
  }
  // The memory is zero and Channel's members start as zeros; a constructor call would need operator new.
  auto* channel = reinterpret_cast<Channel*>(channel_memory);
  if (!channel->connect(name, rank, node)) return nullptr;
  channel_memory_owner = channel_memory;
  channel->join();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  return channel;
}

bool Channel::connect(const char* name, std::uint32_t rank, std::uint32_t node) {
  char who[32] = "this process";
  if (rank != any_rank) snprintf(who, sizeof who, "rank %u", rank);
  const char* where = rank != any_rank ? "run" : "fabric; is its \"dryfly serve\" still there?";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = strlen(name);
  if (length > sizeof address.sun_path - 2) return false;
  memcpy(address.sun_path + 1, name, length);
  // Complete before the connection is made: the conductor waits at the door for what follows it.
  Hello hello{};
  hello.magic = segment_magic;
  hello.version = version;
  hello.rank = rank;
  hello.node = node;
  hello.pid = static_cast<std::uint32_t>(getpid());
  dl_iterate_phdr(note_library, &hello);
  const ssize_t got = readlink("/proc/self/exe", hello.program_path, sizeof hello.program_path - 1);
  if (got < 0) hello.program_path[0] = 0;
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (socket_ < 0 || ::connect(socket_, reinterpret_cast<sockaddr*>(&address), address_bytes) != 0) {
    fprintf(stderr, "dryfly: %s cannot reach its %s (channel %s: %s)\n", who, where, name, strerror(errno));
    if (socket_ >= 0) close(socket_);
    return false;
  }
  // Lets the conductor and the other ranks reach large payloads where the Yama module restricts that to relatives.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (send(socket_, &hello, sizeof hello, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello)) {
    fprintf(stderr, "dryfly: %s cannot greet its %s (%s)\n", who, where, strerror(errno));
    close(socket_);
    return false;
  }
  const int segment = receive_welcome(socket_, welcome_);
  if (segment < 0 || welcome_.magic != segment_magic || welcome_.version != version || welcome_.accepted == 0) {
    fprintf(stderr, "dryfly: %s was not accepted: %s\n", who,
            welcome_.reason[0] != 0 ? welcome_.reason : "dryfly there is of another version");
    if (segment >= 0) close(segment);
    close(socket_);
    return false;
  }
  void* mapped = mmap(nullptr, welcome_.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment, 0);
  if (mapped == MAP_FAILED) {
    close(segment);
    fprintf(stderr, "dryfly: %s cannot map the segment of %llu bytes: %s\n", who,
            static_cast<unsigned long long>(welcome_.segment_bytes), strerror(errno));
    close(socket_);
    return false;
  }
  base_ = static_cast<char*>(mapped);
  segment_ = segment;
  rank_ = welcome_.rank;
  return true;
}

int Channel::segment_descriptor() const {
  struct stat status{};
  if (segment_ < 0 || fstat(segment_, &status) != 0) return -1;
  const bool unchanged = S_ISREG(status.st_mode) && status.st_nlink == 0 &&
                         static_cast<std::uint64_t>(status.st_size) == welcome_.segment_bytes;
  return unchanged ? segment_ : -1;
}

void Channel::leave_common_pages() {
  table_.pages(header_->rank_count).leave_copy(rank_, base_, *header_, header_->table);
  self_->first_requests.leave_copy(rank_, base_, *header_, header_->requests);
}

void Channel::share_common_pages() {
  const int segment = segment_descriptor();
  if (segment < 0) return;
  table_.pages(header_->rank_count).share(base_, *header_, header_->table, segment);
  self_->first_requests.share(base_, *header_, header_->requests, segment);
}

// In a job whose ranks all talk to each other each rank visits all of what payloads take first, at a fault for each
// part. Taken here, these faults do not fall into the middle of an exchange.
void Channel::map_ahead() {
  const auto map = [this](std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += arena_part_bytes) {
      static_cast<void>(*static_cast<const volatile char*>(base_ + offset + at));
    }
  };
  map(header_->rank_area_offset + header_->rank_area_stride * rank_, header_->rank_area_stride);
  map(header_->arena_states_offset, header_->arena_ahead_bytes / arena_granule);
  map(header_->arena_offset, header_->arena_ahead_bytes);
}

void Channel::join() {
  header_ = reinterpret_cast<SegmentHeader*>(base_);
  char* area = base_ + header_->rank_area_offset + header_->rank_area_stride * rank_;
  page_ = reinterpret_cast<RankPage*>(area);
  command_ring_ = area + sizeof(RankPage);
  event_ring_ = command_ring_ + header_->command_ring_bytes;
  arena_.open(base_, header_, page_->arena_hands);
  spinner_.share_with(header_->rank_count);
  self_ = &dryfly_self != nullptr ? &dryfly_self : static_cast<Self*>(dlsym(RTLD_DEFAULT, "dryfly_self"));
  if (self_ == nullptr) self_ = &own_self_;
  self_->version = version;
  self_->page = page_;
  self_->header = header_;
  self_->publish = [] { get()->publish(); };
  self_->gate = [](GateKind kind) { return get()->gate(kind); };
  self_->attached.store(1, std::memory_order_release);
  if (served() && self_->joined != nullptr) self_->joined();
}

namespace {
void after_fork_in_child() {
  // The child shares the mapping but is no rank: it forgets the channel, and its clock becomes real again.
  if (Channel::get() == nullptr) return;
  channel_memory_owner = nullptr;
  if (&dryfly_self != nullptr) dryfly_self.attached.store(0, std::memory_order_relaxed);
}
}  // namespace

}  // namespace dryfly::wire
