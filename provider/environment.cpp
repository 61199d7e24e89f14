#include "provider/environment.hpp"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <algorithm>

#include "provider/attributes.hpp"

namespace dryfly::provider {

namespace {

constexpr std::uint64_t inline_bytes = 192;
constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t collective_timeout_us_max = 20'000'000;

// Reads one setting after the other; after the first that is refused it only remembers why.
class Reader {
 public:
  Reader(char* reason, std::size_t room) : reason_(reason), room_(room) {}
  bool ok() const { return ok_; }

  // The words are those of libfabric; before them stands which variable they are about.
  __attribute__((format(printf, 3, 4))) void refuse(const char* name, const char* format, ...) {
    if (!ok_) return;
    ok_ = false;
    const char* value = text(name);
    const int used = snprintf(reason_, room_, "FI_CXI_%s=%s: ", name, value != nullptr ? value : "");
    if (used < 0 || static_cast<std::size_t>(used) >= room_) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason_ + used, room_ - static_cast<std::size_t>(used), format, arguments);
    va_end(arguments);
  }

  const char* text(const char* name) const {
    char variable[64];
    snprintf(variable, sizeof variable, "FI_CXI_%s", name);
    const char* value = getenv(variable);
    return value != nullptr && *value != 0 ? value : nullptr;
  }

  bool size(const char* name, std::uint64_t& value) {
    const char* given = text(name);
    if (given == nullptr) return false;
    char* end = nullptr;
    errno = 0;
    const long long number = strtoll(given, &end, 0);
    if (*end != 0 || errno != 0 || number < 0) {
      refuse(name, "accepted is a number of at least 0");
    } else {
      value = static_cast<std::uint64_t>(number);
    }
    return true;
  }

  void flag(const char* name, bool& value) {
    const char* given = text(name);
    if (given == nullptr) return;
    const auto is = [&](const char* word) { return strcasecmp(given, word) == 0; };
    if (is("0") || is("false") || is("no") || is("off")) {
      value = false;
    } else if (is("1") || is("true") || is("yes") || is("on")) {
      value = true;
    } else {
      char lower[64];
      std::size_t i = 0;
      for (; name[i] != 0 && i + 1 < sizeof lower; ++i) lower[i] = static_cast<char>(name[i] | 0x20);
      lower[i] = 0;
      for (char& letter : lower) letter = letter == ('_' | 0x20) ? '_' : letter;
      refuse(name, "failed to parse bool var %s=%s", lower, given);
    }
  }

  // One of these words.
  template <std::size_t count>
  void word(const char* name, const char* const (&accepted)[count], const char* refusal, std::size_t* index = nullptr) {
    const char* given = text(name);
    if (given == nullptr) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (strcasecmp(given, accepted[i]) != 0) continue;
      if (index != nullptr) *index = i;
      return;
    }
    refuse(name, "%s: %s", refusal, given);
  }

 private:
  char* reason_;
  std::size_t room_;
  bool ok_ = true;
};

// Sizes that do not fit each other are adjusted where libfabric does so, and refused where it takes its defaults.
void read_rendezvous(Reader& reader, Environment& to) {
  const bool buffer = reader.size("OFLOW_BUF_SIZE", to.overflow_buffer);
  const bool threshold = reader.size("RDZV_THRESHOLD", to.rendezvous_threshold);
  const bool get_min = reader.size("RDZV_GET_MIN", to.rendezvous_get_min);
  const bool eager_size = reader.size("RDZV_EAGER_SIZE", to.rendezvous_eager_size);
  to.rendezvous_given = threshold || get_min || eager_size;
  to.rendezvous_threshold = std::max(to.rendezvous_threshold, inline_bytes);
  to.rendezvous_eager_size = std::min(to.rendezvous_eager_size, to.rendezvous_threshold);
  const char* cause = buffer ? "OFLOW_BUF_SIZE" : threshold ? "RDZV_THRESHOLD" : "RDZV_GET_MIN";
  if (to.rendezvous_threshold > to.overflow_buffer) {
    reader.refuse(cause, "Invalid rdzv_threshold: %llu", static_cast<unsigned long long>(to.rendezvous_threshold));
  } else if (to.rendezvous_get_min > to.overflow_buffer - to.rendezvous_threshold) {
    reader.refuse(cause, "Invalid rdzv_get_min: %llu", static_cast<unsigned long long>(to.rendezvous_get_min));
  }
}

void read_buffers(Reader& reader, Environment& to) {
  reader.size("OFLOW_BUF_COUNT", to.overflow_buffers);
  reader.size("OFLOW_BUF_MIN_POSTED", to.overflow_buffers);
  reader.size("REQ_BUF_SIZE", to.request_buffer);
  reader.size("REQ_BUF_MIN_POSTED", to.request_buffers);
  to.request_buffer = std::max(to.request_buffer, to.eager_max());
  to.request_buffers = std::max<std::uint64_t>(to.request_buffers, 2);
}

void read_queues(Reader& reader, Environment& to) {
  reader.size("EQ_ACK_BATCH_SIZE", to.event_batch);
  to.event_batch = std::max<std::uint64_t>(to.event_batch, 1);
  reader.size("DEFAULT_CQ_SIZE", to.queue_size);
  if (to.queue_size == 0) reader.refuse("DEFAULT_CQ_SIZE", "Default CQ size invalid. Setting to 131072");
  reader.size("DEFAULT_TX_SIZE", to.transmit_size);
  if (to.transmit_size < least_queue_depth || to.transmit_size > transmit_depth_max) {
    reader.refuse("DEFAULT_TX_SIZE", "Default TX size invalid. Setting to %zu", queue_depth);
  }
  reader.size("DEFAULT_RX_SIZE", to.receive_size);
  if (to.receive_size < least_queue_depth || to.receive_size > receive_depth_max) {
    reader.refuse("DEFAULT_RX_SIZE", "Default RX size invalid. Setting to %zu", queue_depth);
  }
  std::uint64_t percent = 50;
  reader.size("CQ_FILL_PERCENT", percent);
  if (percent < 1 || percent > 100) reader.refuse("CQ_FILL_PERCENT", "CQ fill percent invalid. Setting to 50.");
}

void read_collectives(Reader& reader, Environment& to) {
  reader.size("ZBCOLL_RADIX", to.join_radix);
  if (to.join_radix < 2) {
    reader.refuse("ZBCOLL_RADIX", "Invalid zbcoll_radix=%llu, reset to 2",
                  static_cast<unsigned long long>(to.join_radix));
  }
  // libfabric takes the nearest that it accepts.
  reader.size("COLL_TIMEOUT_USEC", to.collective_timeout_us);
  to.collective_timeout_us = std::clamp<std::uint64_t>(to.collective_timeout_us, 1, collective_timeout_us_max);
  reader.size("HWCOLL_ADDRS_PER_JOB", to.groups_per_job);
  reader.flag("COLL_USE_DMA_PUT", to.collective_dma);
}

// Settings without an effect in the model: wrong values are refused all the same.
void check_others(Reader& reader) {
  constexpr const char* classes[] = {"BEST_EFFORT", "LOW_LATENCY", "DEDICATED_ACCESS", "BULK_DATA"};
  reader.word("RGET_TC", classes, "Unrecognized rget_tc");
  constexpr const char* pinning[] = {"off", "all"};
  reader.word("ATS_MLOCK_MODE", pinning, "Unrecognized ats_mlock_mode");
  constexpr const char* doorbells[] = {"always", "idle", "never"};
  reader.word("LLRING_MODE", doorbells, "Unrecognized llring_mode");
  constexpr const char* updates[] = {"always", "high-freq-empty", "low-freq-empty", "low-freq"};
  reader.word("CQ_POLICY", updates, "Unrecognized cq_policy");
  constexpr const char* protocols[] = {"default", "alt_read", "alt-read"};
  reader.word("RDZV_PROTO", protocols, "Unrecognized rendezvous protocol");
  constexpr const char* orders[] = {"default", "strict", "relaxed"};
  reader.word("MR_TARGET_ORDERING", orders, "Unrecognized mr_target_ordering");
}

void set_defaults(Environment& to) {
  to = {};
  to.rendezvous_threshold = 16'384;
  to.rendezvous_get_min = 2'049;
  to.rendezvous_eager_size = 2'048;
  to.optimized_regions = true;
  to.overflow_buffer = to.request_buffer = 12 * mebibyte;
  to.overflow_buffers = 3;
  to.request_buffers = 6;
  to.event_batch = 32;
  to.queue_size = 131'072;
  to.transmit_size = to.receive_size = queue_depth;
  to.join_radix = 2;
  to.collective_timeout_us = collective_timeout_us_max;
}

}  // namespace

bool read_environment(Environment& to, char* reason, std::size_t room) {
  Reader reader(reason, room);
  set_defaults(to);
  constexpr const char* modes[] = {"hardware", "software", "hybrid"};
  std::size_t mode = 0;
  reader.word("RX_MATCH_MODE", modes, "Unrecognized rx_match_mode", &mode);
  to.match_mode = static_cast<MatchMode>(mode);
  read_rendezvous(reader, to);
  read_buffers(reader, to);
  read_queues(reader, to);
  reader.flag("DISABLE_NON_INJECT_MSG_IDC", to.no_message_inline);
  reader.flag("DISABLE_NON_INJECT_RMA_IDC", to.no_memory_inline);
  reader.flag("DISABLE_NON_INJECT_AMO_IDC", to.no_atomic_inline);
  reader.flag("OPTIMIZED_MRS", to.optimized_regions);
  reader.flag("ENABLE_WRITEDATA", to.write_data);
  reader.flag("HYBRID_RECV_PREEMPTIVE", to.preempt_on_pool);
  reader.flag("HYBRID_POSTED_RECV_PREEMPTIVE", to.preempt_on_posted);
  reader.flag("HYBRID_UNEXPECTED_MSG_PREEMPTIVE", to.preempt_on_unexpected);
  read_collectives(reader, to);
  check_others(reader);
  return reader.ok();
}

wire::EndpointSettings Environment::settings(std::size_t receive_attribute, std::size_t queue_attribute) const {
  wire::EndpointSettings settings{};
  settings.match_mode = static_cast<std::uint32_t>(match_mode);
  if (preempt_on_pool) settings.flags |= wire::endpoint_flag::preempt_on_pool;
  if (preempt_on_posted) settings.flags |= wire::endpoint_flag::preempt_on_posted;
  if (preempt_on_unexpected) settings.flags |= wire::endpoint_flag::preempt_on_unexpected;
  settings.eager_max = rendezvous_given ? eager_max() : wire::far_future;
  settings.rendezvous_head = rendezvous_given ? rendezvous_eager_size : wire::far_future;
  settings.overflow_buffer = overflow_buffer;
  settings.request_buffer = request_buffer;
  settings.overflow_buffers = static_cast<std::uint32_t>(overflow_buffers);
  settings.request_buffers = static_cast<std::uint32_t>(request_buffers);
  settings.event_batch = static_cast<std::uint32_t>(event_batch);
  settings.receive_size = static_cast<std::uint32_t>(receive_attribute);
  // As cxip_evtq_get_queue_size: twice the receives and a state change, the batch, one for a full queue and its status,
  // or what the completion queue asks for if that is more.
  const std::uint64_t least = 2 * receive_attribute + 2 + event_batch + 2;
  settings.event_slots = static_cast<std::uint32_t>(std::max<std::uint64_t>(least, queue_attribute));
  return settings;
}

}  // namespace dryfly::provider
