// The addresses that Open MPI's ranks tell each other by PMIx ("modex"). All ranks are clients of one PMIx server, and
// a client asks it for one peer at a time: at the first message to each, in wall time, 65,280 times in an alltoall on
// 256 ranks. So a rank also writes what it puts to a file of the run (DRYFLY_MODEX), and finds there what its peers
// have put; the fence in MPI_Init, which every rank passes between the two, makes the file complete. What is not in it
// is asked of the server as ever.
#include "preload/pmix/modex_calls.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "preload/export.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/pmix/group_calls.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

using pmix::Process;
using pmix::Value;

constexpr std::size_t key_bytes = 64;
constexpr std::uint32_t rank_count_max = 1U << 20;
constexpr int keys_max = 8;

// A record of the file; the bytes follow.
struct Card {
  char key[key_bytes];
  std::uint32_t rank;
  std::uint32_t size;
};

struct Key {
  char name[key_bytes];
  const Card** by_rank;
  std::uint32_t rank_count;
};

// The file as far as it was last read. The pages stay mapped: cards point into them.
struct Cards {
  std::size_t read_bytes = 0;
  Key keys[keys_max] = {};
};

Cards cards;
std::uint32_t lock_word = 0;

class Locked {
 public:
  Locked() {
    while (__atomic_exchange_n(&lock_word, 1U, __ATOMIC_ACQUIRE) != 0) real::nap_ns(10000);
  }
  ~Locked() { __atomic_store_n(&lock_word, 0U, __ATOMIC_RELEASE); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

const char* file_name() {
  static const char* const name = getenv("DRYFLY_MODEX");
  return name;
}

bool fits(const char* key) { return key != nullptr && strlen(key) < key_bytes && strncmp(key, "pmix.", 5) != 0; }

void write_card(const char* key, const Value& value) {
  const char* rank = getenv("PMIX_RANK");
  if (file_name() == nullptr || rank == nullptr || !fits(key) || value.type != pmix::Type::bytes) return;
  const std::size_t bytes = sizeof(Card) + (value.bytes.size + 7) / 8 * 8;
  auto* card = static_cast<Card*>(calloc(1, bytes));
  if (card == nullptr) return;
  strcpy(card->key, key);
  card->rank = static_cast<std::uint32_t>(strtoul(rank, nullptr, 10));
  card->size = static_cast<std::uint32_t>(value.bytes.size);
  memcpy(card + 1, value.bytes.first, value.bytes.size);
  // One write each, at the end of the file as it then is: records of several ranks do not mix.
  const int file = open(file_name(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) {
    if (write(file, card, bytes) != static_cast<ssize_t>(bytes)) unlink(file_name());  // the server has it anyhow
    close(file);
  }
  free(card);
}

Key* find_key(const char* name, bool add) {
  for (Key& key : cards.keys) {
    if (strcmp(key.name, name) == 0) return &key;
    if (key.name[0] != 0) continue;
    if (!add) return nullptr;
    strcpy(key.name, name);
    return &key;
  }
  return nullptr;
}

void note(const Card* card) {
  Key* key = find_key(card->key, true);
  if (key == nullptr || card->rank >= rank_count_max) return;
  if (card->rank >= key->rank_count) {
    const std::uint32_t count = card->rank * 2 + 64;
    auto* larger = static_cast<const Card**>(realloc(key->by_rank, count * sizeof(Card*)));
    if (larger == nullptr) return;
    memset(larger + key->rank_count, 0, (count - key->rank_count) * sizeof(Card*));
    key->by_rank = larger;
    key->rank_count = count;
  }
  key->by_rank[card->rank] = card;
}

void read_cards() {
  const int file = open(file_name(), O_RDONLY | O_CLOEXEC);
  struct stat state{};
  if (file >= 0 && fstat(file, &state) == 0 && static_cast<std::size_t>(state.st_size) > cards.read_bytes) {
    const auto size = static_cast<std::size_t>(state.st_size);
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) {
      // Another rank may be writing: the record that is not whole yet is read the next time.
      while (cards.read_bytes + sizeof(Card) <= size) {
        const auto* card = reinterpret_cast<const Card*>(static_cast<const char*>(mapped) + cards.read_bytes);
        const std::size_t bytes = sizeof(Card) + (card->size + 7U) / 8 * 8;
        if (cards.read_bytes + bytes > size) break;
        note(card);
        cards.read_bytes += bytes;
      }
    }
  }
  if (file >= 0) close(file);
}

const Card* find_card(const char* name, std::uint32_t rank) {
  const Key* key = find_key(name, false);
  return key != nullptr && rank < key->rank_count ? key->by_rank[rank] : nullptr;
}

// A value as the library would give it: its owner frees both parts.
Value* value_of(const Card& card) {
  auto* value = static_cast<Value*>(calloc(1, sizeof(Value)));
  auto* bytes = static_cast<char*>(malloc(card.size != 0 ? card.size : 1));
  if (value == nullptr || bytes == nullptr) {
    free(value);
    free(bytes);
    return nullptr;
  }
  memcpy(bytes, &card + 1, card.size);
  value->type = pmix::Type::bytes;
  value->bytes.first = bytes;
  value->bytes.size = card.size;
  return value;
}

Value* look_up(const Process* process, const char* key) {
  if (file_name() == nullptr || process == nullptr || !fits(key) || !in_own_name_space(*process)) return nullptr;
  const Locked locked;
  const Card* card = find_card(key, process->rank);
  if (card == nullptr) {
    read_cards();
    card = find_card(key, process->rank);
  }
  return card != nullptr ? value_of(*card) : nullptr;
}

}  // namespace

void* next_pmix_function(const char* name) {
  void* found = find_in_library(name);
  return found != nullptr ? found : dlsym(RTLD_NEXT, name);
}

bool in_own_name_space(const Process& process) {
  static const char* const own = getenv("PMIX_NAMESPACE");
  return own != nullptr && strcmp(process.name_space, own) == 0;
}

}  // namespace dryfly::preload

using namespace dryfly::preload;
namespace pmix = dryfly::pmix;

DRYFLY_EXPORT int PMIx_Put(std::uint8_t scope, const char* key, pmix::Value* value) {
  static const auto real =
      reinterpret_cast<int (*)(std::uint8_t, const char*, pmix::Value*)>(next_pmix_function("PMIx_Put"));
  write_card(key, *value);
  return real(scope, key, value);
}

DRYFLY_EXPORT int PMIx_Get(const pmix::Process* process, const char* key, const pmix::Info* infos, std::size_t count,
                           pmix::Value** value) {
  using Get = int (*)(const pmix::Process*, const char*, const pmix::Info*, std::size_t, pmix::Value**);
  static const auto real = reinterpret_cast<Get>(next_pmix_function("PMIx_Get"));
  *value = look_up(process, key);
  if (*value == nullptr) *value = look_up_in_group(process, key, infos, count);
  return *value != nullptr ? 0 : real(process, key, infos, count, value);
}
