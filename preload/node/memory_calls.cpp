#include "preload/node/memory_calls.hpp"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/export.hpp"
#include "rank/kernel_call.hpp"

namespace dryfly::preload {

namespace {

constexpr int mode_flags = 7 << 13;                                // static or relative numbers of domains, balancing
constexpr std::uint64_t of_node = 1, of_address = 2, allowed = 4;  // flags of get_mempolicy
constexpr std::uint64_t page_bytes = 4096;

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  MemoryPolicy policy = MemoryPolicy::usual;
  std::uint64_t domains = 0;
};
constexpr std::size_t ranges_max = 64;
constinit Range ranges[ranges_max];  // the last ones that mbind was asked for
std::size_t range_count = 0;         // ever

long fail(int error) {
  errno = error;
  return -1;
}

std::uint64_t read_domains(const std::uint64_t* domains, std::uint64_t bits) {
  if (domains == nullptr || bits < 2) return 0;
  return bits - 1 >= 64 ? *domains : *domains & ((std::uint64_t{1} << (bits - 1)) - 1);
}

// False and errno for what Linux refuses.
bool read_policy(int mode, const std::uint64_t* domains, std::uint64_t bits, MemoryPolicy& policy,
                 std::uint64_t& wanted) {
  const int kind = mode & ~mode_flags;
  wanted = read_domains(domains, bits) & node_shape()->all_domains();
  policy = static_cast<MemoryPolicy>(kind);
  const bool is_known = kind >= 0 && kind <= static_cast<int>(MemoryPolicy::weighted);
  const bool needs_domains = policy == MemoryPolicy::bind || policy == MemoryPolicy::interleave ||
                             policy == MemoryPolicy::preferred_many || policy == MemoryPolicy::weighted;
  if (is_known && (wanted != 0 || !needs_domains)) return true;
  errno = EINVAL;
  return false;
}

const Range* range_of(long address) {
  const auto at = static_cast<std::uint64_t>(address);
  const std::size_t kept = range_count < ranges_max ? range_count : ranges_max;
  for (std::size_t back = 1; back <= kept; ++back) {
    const Range& range = ranges[(range_count - back) % ranges_max];
    if (at >= range.begin && at < range.end) return &range;
  }
  return nullptr;
}

int lowest(std::uint64_t domains) { return domains == 0 ? 0 : __builtin_ctzll(domains); }

// Where memory of this policy is.
int domain_of(MemoryPolicy policy, std::uint64_t domains) {
  const int beside = is_bound() ? static_cast<int>(node_shape()->domain_of(processors_of(getpid()).first())) : 0;
  const bool bound = policy != MemoryPolicy::usual && policy != MemoryPolicy::local && domains != 0;
  if (!bound || (domains >> beside & 1) != 0) return beside;
  const std::uint32_t socket = node_shape()->socket[beside];
  for (std::uint32_t domain = 0; domain < node_shape()->domains; ++domain) {
    if ((domains >> domain & 1) != 0 && node_shape()->socket[domain] == socket) return static_cast<int>(domain);
  }
  return lowest(domains);
}

}  // namespace

long place_memory(long address, std::uint64_t bytes, int mode, const std::uint64_t* domains, std::uint64_t bits) {
  Range range;
  if (!read_policy(mode, domains, bits, range.policy, range.domains)) return -1;
  if (static_cast<std::uint64_t>(address) % page_bytes != 0) return fail(EINVAL);
  range.begin = static_cast<std::uint64_t>(address);
  range.end = range.begin + bytes;
  ranges[range_count++ % ranges_max] = range;
  const bool placed = range.policy != MemoryPolicy::usual && range.policy != MemoryPolicy::local;
  if (placed) place_range(bytes, range.domains);
  return 0;
}

long set_memory_policy(int mode, const std::uint64_t* domains, std::uint64_t bits) {
  MemoryPolicy policy{};
  std::uint64_t wanted = 0;
  if (!read_policy(mode, domains, bits, policy, wanted)) return -1;
  set_policy(policy, wanted);
  return 0;
}

long get_memory_policy(int* mode, std::uint64_t* domains, std::uint64_t bits, long address, std::uint64_t flags) {
  if (domains != nullptr && bits < node_shape()->domains) return fail(EINVAL);
  MemoryPolicy policy = binding()->policy;
  std::uint64_t told = binding()->memories;
  if ((flags & of_address) != 0) {
    if (const Range* range = range_of(address)) {
      policy = range->policy;
      told = range->domains;
    }
  }
  if ((flags & allowed) != 0) told = node_shape()->all_domains();
  if (mode != nullptr) *mode = (flags & of_node) != 0 ? domain_of(policy, told) : static_cast<int>(policy);
  if (domains != nullptr && bits > 1) {
    memset(domains, 0, (bits + 62) / 64 * sizeof *domains);  // as Linux: one bit less than `bits`
    *domains = told;
  }
  return 0;
}

long move_pages_virtually(std::uint64_t count, const long* pages, const int* to, int* status) {
  const int here = domain_of(binding()->policy, binding()->memories);
  std::uint64_t asked = 0;
  for (std::uint64_t page = 0; page < count; ++page) {
    const Range* range = to == nullptr ? range_of(pages[page]) : nullptr;
    const int domain = to != nullptr ? to[page] : range != nullptr ? domain_of(range->policy, range->domains) : here;
    if (domain >= 0 && domain < 64) asked |= std::uint64_t{1} << domain;
    if (status != nullptr) status[page] = domain;
  }
  if (to != nullptr && count > 0) place_range(count * page_bytes, asked);
  return 0;
}

namespace {

template <typename... Words>
long kernel(long number, Words... words) {
  const long arguments[6] = {static_cast<long>(words)...};
  return rank::kernel_call(number, arguments);
}

long word(const void* pointer) { return reinterpret_cast<long>(pointer); }

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT long mbind(void* address, unsigned long bytes, int mode, const unsigned long* domains, unsigned long bits,
                         unsigned flags) {
  if (node_shape() == nullptr) return kernel(SYS_mbind, word(address), bytes, mode, word(domains), bits, flags);
  return place_memory(word(address), bytes, mode, domains, bits);
}

DRYFLY_EXPORT long set_mempolicy(int mode, const unsigned long* domains, unsigned long bits) {
  if (node_shape() == nullptr) return kernel(SYS_set_mempolicy, mode, word(domains), bits);
  return set_memory_policy(mode, domains, bits);
}

DRYFLY_EXPORT long get_mempolicy(int* mode, unsigned long* domains, unsigned long bits, void* address, unsigned flags) {
  if (node_shape() == nullptr) return kernel(SYS_get_mempolicy, word(mode), word(domains), bits, word(address), flags);
  return get_memory_policy(mode, domains, bits, word(address), flags);
}
