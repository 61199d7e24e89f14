#include "wire/channel.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/futex.hpp"

namespace dryfly::wire {

namespace {

// Polls that find nothing before each event in a blocking call. A lock of a window of one's own takes two turns of the
// library, which talks to itself for it.
constexpr std::uint32_t turns_before_event = 8;
// A test loop that has found nothing this often in a row is treated as waiting in small steps.
constexpr std::uint32_t polls_before_stepping = 64;
constexpr std::uint64_t step_ps_max = 1'000'000;     // 1 us of virtual time
constexpr std::uint64_t threaded_step_ps = 100'000;  // doubled with each step, so that a long wait takes few
constexpr std::uint32_t threaded_doublings = 17;     // up to 13 ms

constexpr int spin_steps = 200;
constexpr std::uint32_t spinners_max = 2;
constexpr long nap_ns = 200'000'000;

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
  close(segment);
  if (mapped == MAP_FAILED) {
    fprintf(stderr, "dryfly: %s cannot map the segment of %llu bytes: %s\n", who,
            static_cast<unsigned long long>(welcome_.segment_bytes), strerror(errno));
    close(socket_);
    return false;
  }
  base_ = static_cast<char*>(mapped);
  rank_ = welcome_.rank;
  return true;
}

void Channel::join() {
  header_ = reinterpret_cast<SegmentHeader*>(base_);
  char* area = base_ + header_->rank_area_offset + header_->rank_area_stride * rank_;
  page_ = reinterpret_cast<RankPage*>(area);
  command_ring_ = area + sizeof(RankPage);
  event_ring_ = command_ring_ + header_->command_ring_bytes;
  arena_.open(base_, header_, page_->arena_hands);
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

void Channel::leave_if_job_is_over() {
  pollfd watched{socket_, POLLRDHUP, 0};
  const bool conductor_gone = ::poll(&watched, 1, 0) > 0;
  // The launcher says why the job ends; a rank that is still here only has to go.
  if (conductor_gone && served()) fprintf(stderr, "dryfly: the fabric is no longer served; this process ends\n");
  if (conductor_gone || header_->job_over.load(std::memory_order_relaxed) != 0) _exit(70);
}

void Channel::raise_attention() {
  header_->attention[rank_ / 64].fetch_or(std::uint64_t{1} << (rank_ % 64), std::memory_order_seq_cst);
  if (header_->conductor_asleep.load(std::memory_order_seq_cst) != 0) {
    header_->doorbell.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(header_->doorbell);
  }
}

void Channel::publish() {
  const std::uint64_t at = now();
  // A rank that watches memory sees it as it was at its last gate: until the next one the network stays there.
  if (!watches_memory()) page_->clock_ps.store(at, std::memory_order_seq_cst);
  if (at >= page_->notify_at_ps.load(std::memory_order_seq_cst)) {
    page_->notify_at_ps.store(far_future, std::memory_order_relaxed);
    raise_attention();
  }
  // Outside virtual time nobody waits for this clock, and the rank may block elsewhere before its next poll.
  if (self_->call_mode.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(CallMode::outside)) {
    raise_attention();
  }
  // Let go between this call's beginning and now: what it has just pushed is to be taken all the same.
  if (page_->away.load(std::memory_order_seq_cst) != 0) raise_attention();
  serve();
}

void Channel::push(Command& command, const void* payload) {
  const std::uint32_t ring = header_->command_ring_bytes;
  std::uint32_t bytes = command_bytes;
  if ((command.flags & command_flag::payload_inline) != 0) bytes += static_cast<std::uint32_t>(command.length);
  bytes = (bytes + record_granule - 1) / record_granule * record_granule;
  const std::uint64_t to_end = ring - command_head_ % ring;
  const std::uint64_t needed = bytes > to_end ? bytes + to_end : bytes;
  if (command_head_ + needed - page_->command_tail.load(std::memory_order_acquire) > ring) {
    request(GateKind::drain, 0);
  }
  if (bytes > to_end) {
    *reinterpret_cast<std::uint32_t*>(command_ring_ + command_head_ % ring) = wrap_record;
    command_head_ += to_end;
  }
  command.record_bytes = bytes;
  command.at_ps = now();
  char* record = command_ring_ + command_head_ % ring;
  memcpy(record, &command, sizeof command);
  if ((command.flags & command_flag::payload_inline) != 0) memcpy(record + command_bytes, payload, command.length);
  command_head_ += bytes;
  page_->command_head.store(command_head_, std::memory_order_release);
  empty_polls_ = 0;
  turns_taken_ = 0;
  self_->has_acted.store(1, std::memory_order_relaxed);
  publish();
  // Its owner tells others of the end-point by means outside virtual time: it must be there when this returns.
  if (command.kind == CommandKind::open_endpoint) request(GateKind::drain, 0);
}

bool Channel::push_with_payload(Command& command, const void* payload, std::uint64_t length, bool stable) {
  command.length = length;
  command.flags &= ~(command_flag::payload_inline | command_flag::payload_arena | command_flag::payload_memory);
  if (length <= header_->inline_max) {
    command.flags |= command_flag::payload_inline;
  } else if (length <= header_->eager_max || length <= staged_max_ || !stable || header_->cross_memory_allowed == 0) {
    const std::uint64_t offset = arena_.allocate(length);
    if (offset == 0) return false;
    memcpy(base_ + offset, payload, length);
    command.arena_offset = offset;
    command.flags |= command_flag::payload_arena;
  } else {
    command.buffer = reinterpret_cast<std::uint64_t>(payload);
    command.flags |= command_flag::payload_memory;
  }
  push(command, payload);
  return true;
}

const Event* Channel::head() {
  const std::uint32_t ring = header_->event_ring_bytes;
  if (event_tail_ == page_->event_head.load(std::memory_order_acquire)) return nullptr;
  const auto* event = reinterpret_cast<const Event*>(event_ring_ + event_tail_ % ring);
  if (event->record_bytes == wrap_record) {
    event_tail_ += ring - event_tail_ % ring;
    event = reinterpret_cast<const Event*>(event_ring_);
  }
  return event;
}

const Event* Channel::peek() {
  const Event* event = head();
  return event != nullptr && event->at_ps <= now() ? event : nullptr;
}

const void* Channel::inline_payload(const Event& event) const {
  return reinterpret_cast<const char*>(&event) + event_bytes;
}

void Channel::pop() {
  const auto* event = reinterpret_cast<const Event*>(event_ring_ + event_tail_ % header_->event_ring_bytes);
  event_tail_ += event->record_bytes;
  page_->event_tail.store(event_tail_, std::memory_order_release);
  empty_polls_ = 0;
}

int Channel::place(const Event& event, void* to) {
  char* target = to != nullptr ? static_cast<char*>(to) : reinterpret_cast<char*>(event.buffer);
  const std::uint64_t length = event.place_length;
  if ((event.flags & event_flag::payload_inline) != 0) {
    memcpy(target, inline_payload(event), length);
  } else if ((event.flags & event_flag::payload_arena) != 0) {
    memcpy(target, base_ + event.arena_offset, length);
    Arena::free(base_, event.arena_offset);
  } else if ((event.flags & event_flag::payload_memory) != 0) {
    return copy_from_sender(event, target);
  }
  return 0;
}

int Channel::copy_from_sender(const Event& event, char* target) {
  int error = 0;
  const std::uint64_t length = event.place_length;
  if (event.source_pid == static_cast<std::uint32_t>(getpid())) {
    memmove(target, reinterpret_cast<const void*>(event.source_buffer), length);
  } else {
    std::uint64_t done = 0;
    while (done < length && error == 0) {
      iovec here{target + done, length - done};
      iovec there{reinterpret_cast<void*>(event.source_buffer + done), length - done};
      const ssize_t got = process_vm_readv(static_cast<pid_t>(event.source_pid), &here, 1, &there, 1, 0);
      if (got > 0) {
        done += static_cast<std::uint64_t>(got);
      } else {
        error = got < 0 ? errno : EFAULT;
      }
    }
  }
  const std::uint64_t copies = page_->copies_done.load(std::memory_order_relaxed) + 1;
  page_->copies_done.store(copies, std::memory_order_seq_cst);
  if (copies >= page_->notify_copies.load(std::memory_order_seq_cst)) {
    page_->notify_copies.store(far_future, std::memory_order_relaxed);
    raise_attention();
  }
  return error;
}

// A rank that waits at its gate copies what has arrived for it although its clock is not there yet: the sender's
// completion waits for the copy, and this rank's clock may in turn wait for the sender. The bytes go where a posted
// receive wants them, which the program must not look at before its completion.
void Channel::copy_early() {
  const std::uint32_t ring = header_->event_ring_bytes;
  const std::uint64_t end = page_->event_head.load(std::memory_order_acquire);
  for (std::uint64_t at = event_tail_; at != end;) {
    auto* event = reinterpret_cast<Event*>(event_ring_ + at % ring);
    if (event->record_bytes == wrap_record) {
      at += ring - at % ring;
      continue;
    }
    if (event->kind == EventKind::received && (event->flags & event_flag::payload_memory) != 0) {
      const int error = copy_from_sender(*event, reinterpret_cast<char*>(event->buffer));
      if (error != 0 && event->error == 0) event->error = error;
      event->flags &= ~event_flag::payload_memory;
    }
    at += event->record_bytes;
  }
}

void Channel::serve() {
  const std::uint32_t wanted = page_->service_request.load(std::memory_order_acquire);
  if (wanted == page_->service_done.load(std::memory_order_relaxed)) return;
  void* own = reinterpret_cast<void*>(page_->service_address);
  char* staged = base_ + page_->service_arena_offset;
  if (page_->service_is_write != 0) {
    memcpy(own, staged, page_->service_bytes);
  } else {
    memcpy(staged, own, page_->service_bytes);
  }
  page_->service_done.store(wanted, std::memory_order_release);
}

void Channel::request(GateKind kind, std::uint64_t deadline_ps) {
  page_->clock_ps.store(now(), std::memory_order_relaxed);
  page_->gate_kind = kind;
  page_->gate_at_ps = now();
  page_->gate_deadline_ps = deadline_ps;
  page_->gate_has_acted = self_->has_acted.load(std::memory_order_relaxed);
  const std::uint32_t ticket = page_->gate_request.load(std::memory_order_relaxed) + 1;
  page_->gate_request.store(ticket, std::memory_order_seq_cst);
  raise_attention();

  // A short spin saves both futex calls where few ranks are in play; with many, each would only keep the processor
  // from one that has work.
  const auto is_release = [ticket](std::uint32_t word) { return word >> nudge_bits == (ticket & ticket_mask); };
  const auto released = [&] { return is_release(page_->released.load(std::memory_order_acquire)); };
  if (header_->spinning_ranks.fetch_add(1, std::memory_order_relaxed) < spinners_max) {
    spinner_.spin(spin_steps, released, [] { sched_yield(); });
  }
  header_->spinning_ranks.fetch_sub(1, std::memory_order_relaxed);
  if (!released()) {
    page_->asleep.store(1, std::memory_order_seq_cst);
    for (;;) {
      const std::uint32_t seen = page_->released.load(std::memory_order_seq_cst);
      if (is_release(seen)) break;
      serve();
      copy_early();
      futex_wait(page_->released, seen, patience_ns_ != 0 ? patience_ns_ : nap_ns);
      if (released()) break;
      leave_if_job_is_over();
      if (patience_ns_ != 0) {
        patience_ns_ = 0;
        page_->asleep.store(0, std::memory_order_relaxed);
        return request(GateKind::none, 0);  // takes the place of the one that lasts too long
      }
    }
    page_->asleep.store(0, std::memory_order_relaxed);
  }
  const std::uint64_t at_least = page_->release_clock_ps.load(std::memory_order_relaxed);
  if (at_least > now()) self_->now_ps.store(at_least, std::memory_order_relaxed);
  baton_ps_ = now();
}

bool Channel::jump_to_head() {
  const Event* event = head();
  if (event == nullptr) return false;
  const std::uint64_t at = now();
  if (event->at_ps > at) {
    self_->waited_ps.fetch_add(event->at_ps - at, std::memory_order_relaxed);
    self_->now_ps.store(event->at_ps, std::memory_order_relaxed);
    publish();
  }
  return true;
}

void Channel::settle() {
  renew_baton();  // with it, a rank must not wait for instants that its node has not reached
  // Events come in the order of their instants, so a later one at the head proves that nothing more is visible yet.
  // Changes of memory are no events, so there it proves nothing.
  const bool proven = head() != nullptr && !watches_memory();
  if (page_->horizon_ps.load(std::memory_order_acquire) < now() && !proven) request(GateKind::poll, 0);
}

bool Channel::poll_exactly() {
  settle();
  if (peek() != nullptr) return true;
  charge(costs().poll_ps);
  return false;
}

bool Channel::wait_until(GateKind kind, std::uint64_t deadline_ps) {
  if (header_->nodes_share_memory != 0) return wait_with_node(kind, deadline_ps);
  if (head() == nullptr) request(kind, deadline_ps);
  const Event* event = head();
  // What was visible all along is found by the poll itself, whether or not it had reached the ring when we looked.
  if (event != nullptr && event->at_ps <= now()) return true;
  if (event == nullptr && kind == GateKind::wait) {
    turns_taken_ = 0;  // everything stands still, and each rank is given its turns again
    return false;
  }
  charge(costs().poll_ps);
  if (event != nullptr && event->at_ps <= deadline_ps) return jump_to_head();
  const std::uint64_t at = now();
  if (deadline_ps > at) {
    self_->waited_ps.fetch_add(deadline_ps - at, std::memory_order_relaxed);
    self_->now_ps.store(deadline_ps, std::memory_order_relaxed);
    publish();
  }
  return false;
}

// In MPI_Init and MPI_Finalize the library may poll for what is no event of ours. So the rank sleeps, but only for a
// while of wall time, longer each time nothing has come.
bool Channel::wait_outside() {
  if (jump_to_head()) return true;
  constexpr long first_sleep_ns = 50'000;
  constexpr std::uint32_t doublings = 8;
  patience_ns_ = first_sleep_ns << (empty_polls_ < doublings ? empty_polls_ : doublings);
  request(GateKind::wait, far_future);
  patience_ns_ = 0;
  return jump_to_head();
}

bool Channel::take_turn() {
  const auto mode = static_cast<CallMode>(self_->call_mode.load(std::memory_order_relaxed));
  const bool blocking = mode == CallMode::blocking || mode == CallMode::unmarked;
  if (!blocking || turns_taken_ >= turns_before_event) return false;
  ++turns_taken_;
  return true;
}

bool Channel::idle() {
  if (peek() != nullptr) return true;
  const auto mode = static_cast<CallMode>(self_->call_mode.load(std::memory_order_relaxed));
  ++empty_polls_;
  if (mode == CallMode::outside) return wait_outside();
  if (self_->thread_multiple.load(std::memory_order_relaxed) != 0) {
    // Another thread of this rank may be about to act: wait in growing steps, so that it gets its turn. What it does
    // then comes late by at most the time that this thread has waited already.
    sched_yield();
    const std::uint32_t doublings = empty_polls_ < threaded_doublings ? empty_polls_ : threaded_doublings;
    return wait_until(GateKind::wait_until, now() + (threaded_step_ps << doublings));
  }
  if (served() && mode == CallMode::unmarked) return wait_until(GateKind::wait_until, now() + step_ps());
  if (mode == CallMode::testing) {
    if (empty_polls_ <= polls_before_stepping) return poll_exactly();
    return wait_until(GateKind::wait_until, now() + step_ps_max);
  }
  return wait_until(GateKind::wait, far_future);
}

bool Channel::idle_until(std::uint64_t deadline_ps) {
  if (peek() != nullptr) return true;
  if (deadline_ps <= now()) return poll_exactly();
  if (served()) deadline_ps = sooner(deadline_ps);
  return wait_until(GateKind::wait_until, deadline_ps);
}

int Channel::gate(GateKind kind) {
  if (kind == GateKind::baton_back) {
    give_baton_back();
    return 0;
  }
  if (kind == GateKind::end && head() != nullptr && header_->nodes_share_memory == 0) {
    jump_to_head();
    return 0;
  }
  request(kind, far_future);
  if (kind == GateKind::end) {
    if (page_->all_ended.load(std::memory_order_acquire) != 0) return 1;
    if (header_->nodes_share_memory == 0) jump_to_head();
  }
  if (kind == GateKind::start) page_->clock_ps.store(now(), std::memory_order_seq_cst);
  return 0;
}

}  // namespace dryfly::wire
