// PMIx groups, by which Open MPI's ranks agree upon the number of a communicator that has no parent
// (MPI_Comm_create_from_group). To the process manager such a call is a collective one, in wall time, and a rank that
// waited there would hold the virtual time that others need to get there. So the ranks meet in virtual time instead
// (GateKind::meet), and what PMIx would have exchanged for them comes from here:
//  - the context id: a hash of the group's name, its members and how many such groups they have made before. Each
//  member
//    finds the same one, and two groups differ;
//  - each member's own number for the communicator, which it hands over with the call and others ask for later: a file
//    of the run, beside the one of addresses (modex_calls.cpp), written before the rank comes to the meeting.
// Left out: leaving and joining groups, invitations, members of other jobs.
#include "preload/pmix/group_calls.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstdint>

#include "preload/export.hpp"
#include "preload/mpi/expected_mpi.hpp"
#include "preload/pmix/hash.hpp"
#include "preload/pmix/meeting.hpp"
#include "preload/pmix/modex_calls.hpp"
#include "preload/rank.hpp"
#include "rank/self.hpp"

namespace dryfly::preload {

namespace {

using pmix::Array;
using pmix::Info;
using pmix::Process;
using pmix::Value;

constexpr char context_id_key[] = "pmix.grp.ctxid";
constexpr char local_id_key[] = "pmix.grp.lclid";
constexpr char shared_with_group_key[] = "pmix.grp.info";

// A record of the file.
struct LocalId {
  std::uint64_t context_id;
  std::uint64_t rank;
  std::uint64_t local_id;
};

// How many groups of this name and these members this rank has made. What does not fit is refused.
struct Count {
  std::uint64_t group;
  std::uint64_t made;
};
constexpr std::size_t groups_max = 4096;
Count counts[groups_max];
std::uint32_t lock_word = 0;

std::uint64_t* times_made(std::uint64_t group) {
  for (Count& count : counts) {
    if (count.made != 0 && count.group != group) continue;
    count.group = group;
    return &count.made;
  }
  return nullptr;
}

const char* file_name() {
  static char name[4096];
  const char* const addresses = getenv("DRYFLY_MODEX");
  if (addresses == nullptr || strlen(addresses) + 8 > sizeof name) return nullptr;
  snprintf(name, sizeof name, "%s-groups", addresses);
  return name;
}

const Value* find(const Info* infos, std::size_t count, const char* key) {
  for (std::size_t i = 0; i < count; ++i) {
    if (strncmp(infos[i].key, key, sizeof infos[i].key) == 0) return &infos[i].value;
  }
  return nullptr;
}

bool write_local_id(const Info* wishes, std::size_t count, std::uint64_t context_id) {
  const Value* shared = find(wishes, count, shared_with_group_key);
  if (shared == nullptr || shared->type != pmix::Type::array || shared->array == nullptr) return true;
  const Value* local = find(static_cast<const Info*>(shared->array->elements), shared->array->size, local_id_key);
  if (local == nullptr || local->type != pmix::Type::size) return true;
  const char* rank = getenv("PMIX_RANK");
  if (rank == nullptr || file_name() == nullptr) return false;
  const LocalId record{context_id, strtoul(rank, nullptr, 10), local->size};
  // One write, at the end of the file as it then is: records of several ranks do not mix.
  const int file = open(file_name(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const bool written = file >= 0 && write(file, &record, sizeof record) == sizeof record;
  if (file >= 0) close(file);
  return written;
}

Value* number_value(std::uint64_t number) {
  auto* value = static_cast<Value*>(calloc(1, sizeof(Value)));
  if (value == nullptr) return nullptr;
  value->type = pmix::Type::size;
  value->size = number;
  return value;
}

}  // namespace

Value* look_up_in_group(const Process* process, const char* key, const Info* wishes, std::size_t count) {
  if (!belongs_to_run() || process == nullptr || key == nullptr || strcmp(key, local_id_key) != 0) return nullptr;
  const Value* context_id = find(wishes, count, context_id_key);
  if (context_id == nullptr || !in_own_name_space(*process) || file_name() == nullptr) return nullptr;
  const int file = open(file_name(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  Value* value = nullptr;
  LocalId record{};
  while (value == nullptr && read(file, &record, sizeof record) == sizeof record) {
    if (record.context_id == context_id->size && record.rank == process->rank) value = number_value(record.local_id);
  }
  close(file);
  return value;
}

}  // namespace dryfly::preload

using namespace dryfly::preload;
namespace pmix = dryfly::pmix;

DRYFLY_EXPORT int PMIx_Group_construct(const char* name, const pmix::Process* members, std::size_t count,
                                       const pmix::Info* wishes, std::size_t wish_count, pmix::Info** results,
                                       std::size_t* result_count) {
  using Construct = int (*)(const char*, const pmix::Process*, std::size_t, const pmix::Info*, std::size_t,
                            pmix::Info**, std::size_t*);
  static const auto real = reinterpret_cast<Construct>(next_pmix_function("PMIx_Group_construct"));
  if (!belongs_to_run()) return real(name, members, count, wishes, wish_count, results, result_count);
  if (dryfly_self.attached.load(std::memory_order_acquire) == 0 || name == nullptr) return pmix::not_supported;
  refuse_group_over_linkx(count);

  // The two sides of an intercommunicator name the members in different orders.
  std::uint64_t sum_of_members = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!in_own_name_space(members[i])) return pmix::not_supported;
    Hash member;
    member.add(&members[i].rank, sizeof members[i].rank);
    sum_of_members += member.value;
  }
  Hash hash;
  hash.add(name, strlen(name));
  hash.add(&sum_of_members, sizeof sum_of_members);
  while (__atomic_exchange_n(&lock_word, 1U, __ATOMIC_ACQUIRE) != 0) {
  }
  std::uint64_t* const made = times_made(hash.value);
  if (made != nullptr) hash.add(made, sizeof *made);
  if (made != nullptr) ++*made;
  __atomic_store_n(&lock_word, 0U, __ATOMIC_RELEASE);
  auto* result = static_cast<pmix::Info*>(calloc(1, sizeof(pmix::Info)));
  if (made == nullptr || result == nullptr || !write_local_id(wishes, wish_count, hash.value)) {
    free(result);
    return pmix::not_supported;
  }
  meet(hash.value, count);
  strcpy(result->key, context_id_key);
  result->value.type = pmix::Type::size;
  result->value.size = hash.value;
  *results = result;
  *result_count = 1;
  return pmix::success;
}

// Nothing is kept of a group, and nobody waits for the others to leave it.
DRYFLY_EXPORT int PMIx_Group_destruct(const char* name, const pmix::Info* wishes, std::size_t count) {
  using Destruct = int (*)(const char*, const pmix::Info*, std::size_t);
  static const auto real = reinterpret_cast<Destruct>(next_pmix_function("PMIx_Group_destruct"));
  return belongs_to_run() ? pmix::success : real(name, wishes, count);
}
