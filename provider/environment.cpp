#include "provider/environment.hpp"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <algorithm>

#include "provider/attributes.hpp"
#include "provider/device_memory.hpp"

namespace dryfly::provider {

namespace {

constexpr std::uint64_t inline_bytes = 192;
constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t collective_timeout_us_max = 20'000'000;
constexpr std::uint64_t control_bytes_max = 64 * mebibyte;

// Reads one setting after the other; after the first that is refused it only remembers why.
class Reader {
 public:
  Reader(char* reason, std::size_t room, const char* prefix = "FI_CXI_")
      : reason_(reason), room_(room), prefix_(prefix) {}
  bool ok() const { return ok_; }

  // The words are those of libfabric; before them stands which variable they are about.
  __attribute__((format(printf, 3, 4))) void refuse(const char* name, const char* format, ...) {
    if (!ok_) return;
    ok_ = false;
    const char* value = text(name);
    const int used = snprintf(reason_, room_, "%s%s=%s: ", prefix_, name, value != nullptr ? value : "");
    if (used < 0 || static_cast<std::size_t>(used) >= room_) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason_ + used, room_ - static_cast<std::size_t>(used), format, arguments);
    va_end(arguments);
  }

  const char* text(const char* name) const {
    char variable[64];
    snprintf(variable, sizeof variable, "%s%s", prefix_, name);
    const char* value = getenv(variable);
    return value != nullptr && *value != 0 ? value : nullptr;
  }

  bool size(const char* name, std::uint64_t& value) {
    const char* given = text(name);
    if (given == nullptr) return false;
    char* end = nullptr;
    errno = 0;
    const long long number = strtoll(given, &end, 0);
    if (*end == 0 && errno == ERANGE && number > 0) {
      refuse(name, "accepted is a number of at most %lld", LLONG_MAX);
    } else if (*end != 0 || errno != 0 || number < 0) {
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
      refuse(name, "failed to parse bool var %s=%s; accepted is 1, true, yes, on, 0, false, no or off", lower, given);
    }
  }

  // "1024,1025", as a launcher lists what the job may use.
  void numbers(const char* name, unsigned long most, const char* accepted) {
    const char* at = text(name);
    while (at != nullptr) {
      char* end = nullptr;
      const unsigned long number = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
      if (number == 0 || number > most || (*end != 0 && *end != ',')) return refuse(name, "accepted is %s", accepted);
      at = *end == ',' ? end + 1 : nullptr;
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
    char list[128] = "";
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t used = strlen(list);
      const char* between = i == 0 ? "" : i + 1 < count ? ", " : " or ";
      snprintf(list + used, sizeof list - used, "%s%s", between, accepted[i]);
    }
    refuse(name, "%s: %s; accepted is %s", refusal, given, list);
  }

 private:
  char* reason_;
  std::size_t room_;
  const char* prefix_;
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
  // The setting that somebody has made is named.
  const char* of_threshold = threshold || !buffer ? "RDZV_THRESHOLD" : "OFLOW_BUF_SIZE";
  const char* of_sum = get_min || !(threshold || buffer) ? "RDZV_GET_MIN" : of_threshold;
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  if (to.rendezvous_threshold > to.overflow_buffer) {
    reader.refuse(of_threshold, "Invalid rdzv_threshold: %llu; accepted is at most the %llu of FI_CXI_OFLOW_BUF_SIZE",
                  number(to.rendezvous_threshold), number(to.overflow_buffer));
  } else if (to.rendezvous_get_min > to.overflow_buffer - to.rendezvous_threshold) {
    reader.refuse(of_sum,
                  "Invalid rdzv_get_min: %llu; accepted is at most the %llu of FI_CXI_OFLOW_BUF_SIZE less the %llu of "
                  "FI_CXI_RDZV_THRESHOLD",
                  number(to.rendezvous_get_min), number(to.overflow_buffer), number(to.rendezvous_threshold));
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
  if (to.queue_size == 0) reader.refuse("DEFAULT_CQ_SIZE", "Default CQ size invalid: accepted is 1 and more");
  reader.size("DEFAULT_TX_SIZE", to.transmit_size);
  if (to.transmit_size < least_queue_depth || to.transmit_size > transmit_depth_max) {
    reader.refuse("DEFAULT_TX_SIZE", "Default TX size invalid: accepted is %zu to %zu", least_queue_depth,
                  transmit_depth_max);
  }
  reader.size("DEFAULT_RX_SIZE", to.receive_size);
  if (to.receive_size < least_queue_depth || to.receive_size > receive_depth_max) {
    reader.refuse("DEFAULT_RX_SIZE", "Default RX size invalid: accepted is %zu to %zu", least_queue_depth,
                  receive_depth_max);
  }
  std::uint64_t percent = 50;
  reader.size("CQ_FILL_PERCENT", percent);
  if (percent < 1 || percent > 100) reader.refuse("CQ_FILL_PERCENT", "CQ fill percent invalid: accepted is 1 to 100");
}

void read_collectives(Reader& reader, Environment& to) {
  reader.size("ZBCOLL_RADIX", to.join_radix);
  if (to.join_radix < 2) {
    reader.refuse("ZBCOLL_RADIX", "Invalid zbcoll_radix=%llu: accepted is 2 and more",
                  static_cast<unsigned long long>(to.join_radix));
  }
  // libfabric takes the nearest that it accepts.
  reader.size("COLL_TIMEOUT_USEC", to.collective_timeout_us);
  to.collective_timeout_us = std::clamp<std::uint64_t>(to.collective_timeout_us, 1, collective_timeout_us_max);
  reader.size("HWCOLL_ADDRS_PER_JOB", to.groups_per_job);
  reader.flag("COLL_USE_DMA_PUT", to.collective_dma);
}

// What software does for large messages, and what it tells other providers.
void read_software(Reader& reader, Environment& to) {
  constexpr const char* classes[] = {"BEST_EFFORT", "LOW_LATENCY", "DEDICATED_ACCESS", "BULK_DATA"};
  constexpr std::uint8_t numbers[] = {3, 1, 0, 2};  // dryfly::TrafficClass
  std::size_t name = 0;
  reader.word("RGET_TC", classes, "Unrecognized rget_tc", &name);
  to.software_class = numbers[name];
  // The words' dashes are underscores to libfabric.
  constexpr const char* protocols[] = {"default", "alt_read", "alt-read"};
  std::size_t protocol = 0;
  reader.word("RDZV_PROTO", protocols, "Unrecognized rendezvous protocol", &protocol);
  to.restricted_gets = protocol != 0;
  constexpr std::uint64_t fewest_gets = 64;
  reader.size("SW_RX_TX_INIT_MAX", to.software_gets);
  to.software_gets = std::clamp<std::uint64_t>(to.software_gets, fewest_gets, UINT32_MAX);
  reader.size("CTRL_RX_EQ_MAX_SIZE", to.control_bytes);
  if (to.control_bytes == 0) to.control_bytes = control_bytes_max;
  reader.size("FC_RETRY_USEC_DELAY", to.retry_delay_us);
  to.retry_delay_us = std::min<std::uint64_t>(to.retry_delay_us, INT32_MAX);
  constexpr const char* doorbells[] = {"idle", "always", "never"};
  std::size_t doorbell = 0;
  reader.word("LLRING_MODE", doorbells, "Unrecognized llring_mode", &doorbell);
  to.commands_fetched = doorbell == 2;
}

// "cxi0,cxi12", as libfabric wants it: one or two digits, without a zero in front.
bool is_device_list(const char* text) {
  for (;;) {
    text += strspn(text, ",");
    if (*text == 0) return true;
    const std::size_t length = strcspn(text, ",");
    const auto is_digit = [&](std::size_t place) { return text[place] >= '0' && text[place] <= '9'; };
    if (strncmp(text, "cxi", 3) != 0 || length < 4 || length > 5 || !is_digit(3)) return false;
    if (length == 5 && (!is_digit(4) || text[3] == '0')) return false;
    text += length;
  }
}

void read_devices(Reader& reader, Environment& to) {
  to.devices = reader.text("DEVICE_NAME");
  if (to.devices != nullptr && !is_device_list(to.devices)) {
    reader.refuse("DEVICE_NAME", "Failed to validate device name: name=%s rc=%d; accepted is a list such as cxi0,cxi1",
                  to.devices, -EINVAL);
  }
  std::uint64_t network = to.default_network;
  reader.size("DEFAULT_VNI", network);
  if (network < 1 || network > UINT16_MAX) reader.refuse("DEFAULT_VNI", "accepted is a VNI of 1 to 65535");
  to.default_network = static_cast<std::uint16_t>(network);
  reader.flag("ATS", to.registration.translates);
  reader.flag("IOTLB", to.registration.keeps_translations);
  reader.flag("ODP", to.registration.on_demand_paging);
  reader.flag("FORCE_ODP", to.registration.only_on_demand_paging);
  to.registration.on_demand_paging |= to.registration.only_on_demand_paging;
}

// `count` where it is none of them; libfabric minds the case.
template <std::size_t count>
std::size_t place_among(const char* given, const char* const (&known)[count]) {
  std::size_t place = 0;
  while (place < count && strcmp(given, known[place]) != 0) ++place;
  return place;
}

// Of libfabric itself, by which its cxi provider goes. A monitor that it does not know it ignores without a word.
void read_cache(Reader& reader, RegistrationSettings& to) {
  constexpr const char* monitors[] = {"memhooks", "kdreg2", "userfaultfd", "disabled", "uffd"};
  constexpr std::size_t short_name = 4;
  const char* given = reader.text("MR_CACHE_MONITOR");
  if (given != nullptr) {
    const std::size_t place = place_among(given, monitors);
    if (place > short_name) {
      return reader.refuse("MR_CACHE_MONITOR", "accepted are userfaultfd, uffd, memhooks, kdreg2 and disabled");
    }
    to.monitor = place == short_name ? MemoryMonitor::userfaultfd : static_cast<MemoryMonitor>(place);
  }
  reader.size("MR_CACHE_MAX_COUNT", to.ranges_max);
  const char* bytes = reader.text("MR_CACHE_MAX_SIZE");
  if (bytes != nullptr && bytes[0] == '-' && strcmp(bytes, "-1") != 0) {
    reader.refuse("MR_CACHE_MAX_SIZE", "accepted is a number of bytes of at least 0, or -1 for no limit");
  } else if (bytes != nullptr && bytes[0] != '-') {
    reader.size("MR_CACHE_MAX_SIZE", to.bytes_max);
  }
  if (to.bytes_max == 0) to.bytes_max = UINT64_MAX;
  // There is no cache then and so no monitor, and cxip_iomm_init gives up where somebody has asked for one.
  if (to.ranges_max == 0 && given != nullptr && to.monitor != MemoryMonitor::disabled) {
    reader.refuse("MR_CACHE_MAX_COUNT",
                  "with FI_MR_CACHE_MONITOR=%s libfabric's cxi opens no domain; accepted are 1 and more, or 0 without "
                  "that monitor",
                  given);
  }
  bool of_devices = true;
  reader.flag("MR_CUDA_CACHE_MONITOR_ENABLED", of_devices);
  reader.flag("MR_ROCR_CACHE_MONITOR_ENABLED", of_devices);
  reader.flag("MR_ZE_CACHE_MONITOR_ENABLED", of_devices);
}

// "2M" and the like; 0 for anything else.
std::uint64_t page_size(const char* text) {
  char* end = nullptr;
  const unsigned long long number = strtoull(text, &end, 10);
  const char* units = "KMG";
  const char* unit = *end != 0 ? strchr(units, *end & ~0x20) : nullptr;
  if (end == text || unit == nullptr || (end[1] != 0 && strcasecmp(end + 1, "b") != 0)) return 0;
  const std::uint64_t bytes = static_cast<std::uint64_t>(number) << 10 * (unit - units + 1);
  return bytes >= 64 * 1024 && bytes <= std::uint64_t{1} << 34 && (bytes & (bytes - 1)) == 0 ? bytes : 0;
}

// libhugetlbfs reads these where a program is linked with it, as the craype-hugepages modules have it.
void read_heap(Reader& reader, RegistrationSettings& to) {
  constexpr const char* refusal = "accepted are yes, no, thp and a page size such as 2M";
  const char* given = reader.text("MORECORE");
  if (given == nullptr || strcasecmp(given, "no") == 0 || strcasecmp(given, "thp") == 0) return;
  if (strcasecmp(given, "yes") != 0) {
    to.heap_page = page_size(given);
    if (to.heap_page == 0) reader.refuse("MORECORE", refusal);
    return;
  }
  const char* usual = reader.text("DEFAULT_PAGE_SIZE");
  to.heap_page = usual != nullptr ? page_size(usual) : 2 * mebibyte;
  if (to.heap_page == 0) reader.refuse("DEFAULT_PAGE_SIZE", "accepted is a page size such as 2M");
}

// Names as libfabric has them, the case aside; it goes on without a word that it does not know.
void read_interfaces(Reader& reader, DeviceSettings& to) {
  constexpr const char* names[] = {"system", "cuda", "rocr", "ze", "neuron", "synapseai"};  // by fi_hmem_iface
  const char* at = reader.text("HMEM");
  if (at == nullptr) return;
  to.interfaces = 1;
  while (*(at += strspn(at, ";")) != 0) {
    const std::size_t length = strcspn(at, ";");
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < std::size(names); ++i) {
      if (strlen(names[i]) == length && strncasecmp(at, names[i], length) == 0) found = 1U << i;
    }
    if (found == 0) {
      return reader.refuse(
          "HMEM",
          "unknown HMEM interface specified in FI_HMEM, entry=\"%.*s\"; accepted are system, cuda, rocr, ze, "
          "neuron and synapseai",
          static_cast<int>(length), at);
    }
    to.interfaces |= found;
    at += length;
  }
}

void read_device_memory(Reader& reader, DeviceSettings& to) {
  reader.size("SAFE_DEVMEM_COPY_THRESHOLD", to.processor_copies_max);
  reader.flag("DISABLE_HMEM_DEV_REGISTER", to.unregistered);
  reader.flag("FORCE_DEV_REG_COPY", to.no_runtime);
  reader.flag("DISABLE_HOST_REGISTER", to.unknown_buffers);
  bool unsynchronised = false;
  reader.flag("DISABLE_CUDA_SYNC_MEMOPS", unsynchronised);
  to.unsynchronised = unsynchronised && device_interface() == FI_HMEM_CUDA;
  to.fork_safe = getenv("CXI_FORK_SAFE") != nullptr || getenv("CXI_FORK_SAFE_HP") != nullptr;
  bool implicit_scaling = false;
  reader.flag("FORCE_ZE_HMEM_SUPPORT", implicit_scaling);
}

// Of libfabric itself. How a buffer is shared with the NIC's driver takes as long in each way, and what the rest is
// about the cxi provider does not ask.
void read_runtimes(Reader& reader, DeviceSettings& to) {
  read_interfaces(reader, to);
  reader.flag("HMEM_CUDA_USE_GDRCOPY", to.gdrcopy);
  bool ignored = false;
  reader.flag("HMEM_CUDA_USE_DMABUF", ignored);
  reader.flag("HMEM_ROCR_USE_DMABUF", ignored);
  reader.flag("HMEM_ZE_USE_DMABUF", ignored);
  reader.flag("HMEM_CUDA_ENABLE_ASYNC_COPY", ignored);
  reader.flag("HMEM_DISABLE_P2P", ignored);
  std::uint64_t bytes = 0;
  reader.size("ROCR_D2H_THRESHOLD", bytes);
}

// Settings without an effect in the model: wrong values are refused all the same.
void check_others(Reader& reader) {
  constexpr const char* pinning[] = {"off", "all"};
  reader.word("ATS_MLOCK_MODE", pinning, "Unrecognized ats_mlock_mode");
  constexpr const char* updates[] = {"always", "high_empty", "low_empty", "low"};
  reader.word("CQ_POLICY", updates, "Unrecognized cq_policy");
  constexpr const char* orders[] = {"default", "strict", "relaxed"};
  reader.word("MR_TARGET_ORDERING", orders, "Unrecognized mr_target_ordering");
  constexpr const char* flags[] = {"DISABLE_EQ_HUGETLB", "DISABLE_CQ_HUGETLB",   "DISABLE_ALT_READ_CMDQ",
                                   "CNTR_TRIG_CMDQ",     "RDZV_ALIGNED_SW_RGET", "TRUNC_OK"};
  bool ignored = false;
  for (const char* name : flags) reader.flag(name, ignored);
  constexpr const char* sizes[] = {"OFLOW_BUF_MAX_CACHED", "REQ_BUF_MAX_CACHED", "CNTR_SPIN_BEFORE_YIELD",
                                   "RNR_MAX_TIMEOUT_US", "COLL_RETRY_USEC"};
  std::uint64_t unused = 0;
  for (const char* name : sizes) reader.size(name, unused);
}

void set_defaults(Environment& to) {
  to = {};
  to.rendezvous_threshold = 16'384;
  to.rendezvous_get_min = 2'049;
  to.rendezvous_eager_size = 2'048;
  to.optimized_regions = to.key_cache = true;
  to.overflow_buffer = to.request_buffer = 12 * mebibyte;
  to.overflow_buffers = 3;
  to.request_buffers = 6;
  to.event_batch = 32;
  to.queue_size = 131'072;
  to.transmit_size = to.receive_size = queue_depth;
  to.join_radix = 2;
  to.collective_timeout_us = collective_timeout_us_max;
  to.software_gets = 1024;
  to.control_bytes = control_bytes_max;
  to.retry_delay_us = 1000;
  to.default_network = 10;
  to.device_memory.interfaces = ~0U;
  to.device_memory.processor_copies_max = 4096;
  to.device_memory.gdrcopy = true;
  to.registration.ranges_max = 4096;
  to.registration.bytes_max = UINT64_MAX;
  to.registration.keeps_translations = true;
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
  reader.flag("HYBRID_PREEMPTIVE", to.preempt_on_overflow);
  reader.flag("MR_MATCH_EVENTS", to.match_events);
  reader.flag("MSG_LOSSLESS", to.lossless);
  reader.flag("ENABLE_TRIG_OP_LIMIT", to.limited_work);
  reader.flag("PROV_KEY_CACHE", to.key_cache);
  read_software(reader, to);
  read_devices(reader, to);
  read_device_memory(reader, to.device_memory);
  check_others(reader);
  if (!reader.ok()) return false;
  Reader of_libfabric(reason, room, "FI_");
  read_cache(of_libfabric, to.registration);
  read_runtimes(of_libfabric, to.device_memory);
  if (!of_libfabric.ok()) return false;
  Reader of_shm(reason, room, "FI_SHM_");
  of_shm.flag("USE_XPMEM", to.registration.attaches);
  if (!of_shm.ok()) return false;
  Reader of_heap(reason, room, "HUGETLB_");
  read_heap(of_heap, to.registration);
  if (!of_heap.ok()) return false;
  Reader of_launcher(reason, room, "SLINGSHOT_");
  of_launcher.numbers("VNIS", UINT16_MAX, "VNIs with commas, each of 1 to 65535, such as 1024,1025");
  of_launcher.numbers("SVC_IDS", UINT32_MAX, "numbers of services with commas, each of at least 1, such as 2");
  return of_launcher.ok();
}

// As libfabric's cxi provider looks for them: by name anywhere in the list.
bool Environment::shows(const char* device) const { return devices == nullptr || strstr(devices, device) != nullptr; }

// As cxip_ep_ctrl_init: an event of 64 B for each process of the job, as far as libfabric knows how many these are, and
// 256 for matches, in whole pages.
std::uint32_t Environment::control_slots() const {
  constexpr std::uint64_t event_bytes = 64;
  constexpr std::uint64_t page_bytes = 4096;
  constexpr std::uint64_t universe_by_default = 256;
  const char* given = getenv("FI_UNIVERSE_SIZE");
  const std::uint64_t universe = given != nullptr ? strtoull(given, nullptr, 0) : universe_by_default;
  const std::uint64_t wanted = universe * event_bytes + (match_events ? 256 * event_bytes : 0);
  const std::uint64_t bytes = std::min(control_bytes, std::max<std::uint64_t>(wanted, 1));
  return static_cast<std::uint32_t>((bytes + page_bytes - 1) / page_bytes * page_bytes / event_bytes);
}

wire::EndpointSettings Environment::settings(std::size_t receive_attribute, std::size_t queue_attribute) const {
  wire::EndpointSettings settings{};
  settings.match_mode = static_cast<std::uint32_t>(match_mode);
  if (preempt_on_pool) settings.flags |= wire::endpoint_flag::preempt_on_pool;
  if (preempt_on_posted) settings.flags |= wire::endpoint_flag::preempt_on_posted;
  if (preempt_on_unexpected) settings.flags |= wire::endpoint_flag::preempt_on_unexpected;
  if (preempt_on_overflow) settings.flags |= wire::endpoint_flag::preempt_on_overflow;
  if (lossless) settings.flags |= wire::endpoint_flag::lossless;
  if (restricted_gets) settings.flags |= wire::endpoint_flag::notifies_done;
  if (commands_fetched) settings.flags |= wire::endpoint_flag::commands_fetched;
  settings.software_class = software_class;
  settings.software_gets = static_cast<std::uint32_t>(software_gets);
  settings.control_slots = control_slots();
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
