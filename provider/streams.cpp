#include "provider/streams.hpp"

#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/mman.h>

#include "provider/cntr.hpp"
#include "provider/memory.hpp"

namespace dryfly::provider {

namespace {

// fi_cxi_ext.h, which distributions' headers lack.
constexpr char counter_extension[] = "cxi_counter_ops";
struct CounterExtension {
  int (*set_wb_buffer)(fid* fid, void* buffer, size_t length);
  int (*get_mmio_addr)(fid* fid, void** address, size_t* length);
};

// Words of a doorbell, each in a line of its own: they add to the successes, add to the failures, and set either to 0.
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t doorbell_words = 4;
constexpr std::size_t words_apart = 8;
constexpr std::size_t doorbell_bytes = doorbell_words * words_apart * sizeof(std::uint64_t);
enum Word : std::size_t { add, add_errors, reset, reset_errors };
// No value that a counter takes.
constexpr std::uint64_t nothing_written = 0xd0'0b'e1'15'00'00'00'00;

void extend(Process& state, Counter& counter) {
  if (counter.doorbell != nullptr || counter.written_back != nullptr) return;
  counter.next_extended = state.extended_counters;
  state.extended_counters = &counter;
}

// A word of the doorbell, and nothing is written there any more.
bool take_word(const Counter& counter, Word word, std::uint64_t& value) {
  auto* const at = static_cast<std::uint64_t*>(counter.doorbell) + word * words_apart;
  if (__atomic_load_n(at, __ATOMIC_RELAXED) == nothing_written) return false;
  value = __atomic_exchange_n(at, nothing_written, __ATOMIC_RELAXED);
  return value != nothing_written;
}

void push_at(rank::Channel& channel, const Counter& counter, std::uint64_t value, std::uint32_t flags,
             std::uint64_t at_ps) {
  wire::Command command = change_of(counter, value, flags);
  rank::push_for_stream(channel, command, at_ps);
}

void take_words(rank::Channel& channel, Counter& counter, std::uint64_t at_ps) {
  std::uint64_t value = 0;
  if (take_word(counter, reset_errors, value)) counter.errors = 0;
  if (take_word(counter, add_errors, value)) counter.errors += value & counter_errors_max;
  if (take_word(counter, reset, value)) {
    counter.value = 0;
    push_at(channel, counter, 0, wire::command_flag::sets, at_ps);
  }
  if (take_word(counter, add, value)) {
    counter.value += value & counter_value_max;
    push_at(channel, counter, value & counter_value_max, 0, at_ps);
  }
}

bool holds(const Counter& counter, std::uint64_t address) {
  return address - reinterpret_cast<std::uint64_t>(counter.doorbell) < page_bytes;
}

// `address` 0: of all counters.
void take_written(rank::Channel& channel, std::uint64_t address, std::uint64_t at_ps) {
  for (Counter* counter = process().extended_counters; counter != nullptr; counter = counter->next_extended) {
    if (counter->doorbell != nullptr && (address == 0 || holds(*counter, address)))
      take_words(channel, *counter, at_ps);
  }
}

void serve(std::uint64_t until_ps) {
  rank::Channel* const channel = rank::Channel::get();
  if (channel == nullptr) return;
  take_written(*channel, 0, channel->now());
  channel->polls().streams().serve(until_ps);
}

// The calls of this process's other threads come first: what they do is at no certain instant anyway.
void serve_outside(std::uint64_t until_ps) {
  rank::Channel* const channel = rank::Channel::get();
  if (channel == nullptr) return;
  const bool locks = channel->polls().has_threads();
  if (locks && !process().lock.try_acquire()) return;
  serve(until_ps);
  if (locks) process().lock.release();
}

// The GPU's runtime enters the provider here, outside of any call of it or, by way of serve(), within one.
class Entered {
 public:
  Entered() : had_it_(process().lock.is_mine()) {
    if (!had_it_) process().lock.acquire();
  }
  ~Entered() {
    if (!had_it_) process().lock.release();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  const bool had_it_;
};

bool serve_next() {
  const Entered entered;
  rank::Channel* const channel = rank::Channel::get();
  return channel != nullptr && channel->polls().streams().serve_next();
}

void device_wrote(std::uint64_t address, std::uint64_t at_ps) {
  const Entered entered;
  rank::Channel* const channel = rank::Channel::get();
  if (channel != nullptr) take_written(*channel, address, at_ps);
}

// What a NIC has written back is put there by this process itself.
bool watch(std::uint64_t address, std::uint32_t bytes) {
  const Entered entered;
  rank::Channel* const channel = rank::Channel::get();
  if (channel == nullptr) return true;
  for (const Counter* each = process().extended_counters; each != nullptr; each = each->next_extended) {
    if (each->written_back != reinterpret_cast<const void*>(address)) continue;
    channel->polls().settle();
    channel->polls().streams().take_visible();
    return true;
  }
  wire::Command command{};
  command.kind = wire::CommandKind::watch;
  command.buffer = address;
  command.length = bytes;
  channel->polls().streams().heed_news();
  rank::push_for_stream(*channel, command, channel->now());
  return false;
}

// The program may have closed the counter meanwhile, and given its buffer back. True: it is the first value there.
bool written_back(const wire::News& news) {
  bool is_first = false;
  for (Counter* each = process().extended_counters; each != nullptr; each = each->next_extended) {
    if (each->number != news.counter || reinterpret_cast<std::uint64_t>(each->written_back) != news.address) continue;
    memcpy(each->written_back, &news.value, sizeof news.value);
    is_first |= each->expects_first;
    each->expects_first = false;
  }
  return is_first;
}

int set_written_back(fid* fid, void* buffer, size_t length) {
  if (buffer == nullptr || length < sizeof(std::uint64_t)) return -FI_EINVAL;
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& counter = *object_of<Counter>(fid);
  extend(session.state(), counter);
  counter.written_back = buffer;
  wire::Command command{};
  command.kind = wire::CommandKind::write_back;
  command.counter = counter.number;
  command.buffer = reinterpret_cast<std::uint64_t>(buffer);
  command.flags = wire::command_flag::sets;
  session.channel().polls().streams().begin();
  if (!counter.expects_first) session.channel().polls().streams().expect();
  counter.expects_first = true;
  session.channel().push(command, nullptr);
  return 0;
}

int get_doorbell(fid* fid, void** address, size_t* length) {
  if (address == nullptr || length == nullptr) return -FI_EINVAL;
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& counter = *object_of<Counter>(fid);
  if (counter.doorbell == nullptr) {
    void* const page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return -FI_ENOMEM;
    for (std::size_t word = 0; word < doorbell_words; ++word) {
      static_cast<std::uint64_t*>(page)[word * words_apart] = nothing_written;
    }
    extend(session.state(), counter);
    counter.doorbell = page;
    session.channel().polls().streams().begin();
  }
  *address = counter.doorbell;
  *length = doorbell_bytes;
  return 0;
}

CounterExtension extension_calls = {
    .set_wb_buffer = set_written_back,
    .get_mmio_addr = get_doorbell,
};

}  // namespace

void serve_streams(rank::Channel& channel) {
  channel.polls().streams().serve_by(
      {.within = serve, .outside = serve_outside, .next = serve_next, .wrote = device_wrote, .watch = watch},
      written_back);
}

int open_counter_extension(fid*, const char* name, std::uint64_t, void** calls, void*) {
  if (name == nullptr || calls == nullptr || strcmp(name, counter_extension) != 0) return -FI_EINVAL;
  *calls = &extension_calls;
  return 0;
}

void close_extension(const Session& session, Counter& counter) {
  if (counter.doorbell == nullptr && counter.written_back == nullptr) return;
  Counter** link = &session.state().extended_counters;
  while (*link != &counter) link = &(*link)->next_extended;
  *link = counter.next_extended;
  if (counter.doorbell != nullptr) munmap(counter.doorbell, page_bytes);
  if (counter.written_back == nullptr || !session) return;
  if (counter.expects_first) session.channel().polls().streams().expect_no_more();
  wire::Command command{};
  command.kind = wire::CommandKind::write_back;
  command.counter = counter.number;
  command.flags = wire::command_flag::sets;
  session.channel().push(command, nullptr);
}

void look_at_doorbells(const Session& session) { take_written(session.channel(), 0, session.channel().now()); }

void show_value(const Session& session, const Counter& counter) {
  if (counter.written_back == nullptr || !session) return;
  const std::uint64_t value = wire::written_back(counter.value);
  session.channel().polls().streams().take_visible();
  memcpy(counter.written_back, &value, sizeof value);
  session.channel().polls().streams().tell(reinterpret_cast<std::uint64_t>(counter.written_back), value, sizeof value);
}

wire::Command change_of(const Counter& counter, std::uint64_t value, std::uint32_t flags) {
  wire::Command command{};
  command.kind = wire::CommandKind::count;
  command.counter = counter.number;
  command.data = value;
  command.flags = flags;
  return command;
}

}  // namespace dryfly::provider
