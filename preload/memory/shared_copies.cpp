#include "preload/memory/shared_copies.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/memory/kept_copies.hpp"
#include "preload/clock/software.hpp"
#include "preload/rank.hpp"
#include "rank/node_accounts.hpp"

namespace dryfly::preload {

namespace {

using wire::CopyPlace;

constexpr std::size_t across_sockets = wire::distance_count - 1;
constexpr std::uint64_t whole_ppb = 1'000'000'000;

rank::NodeAccounts accounts() { return {*dryfly_self.header, *dryfly_self.page}; }
bool is_known(const CopyPlace& place) { return place.region != 0; }

std::size_t distance(const CopyPlace& one, const CopyPlace& other) {
  if (one.region == other.region) return 0;
  return one.socket == other.socket ? 1 : across_sockets;
}

// What this rank, whose own place is known, reads of what is the other's.
struct Copy {
  std::size_t bytes;
  CopyPlace own;
  CopyPlace other;
  bool in_own_cache = false;  // this rank has it there already

  bool stays() const { return accounts().stays_in_caches(bytes); }
  bool crosses_sockets() const {
    return stays() ? own.socket != other.socket : other.memory_socket != own.socket || own.memory_socket != own.socket;
  }
  std::uint64_t ps_per_kib() const {
    const wire::CopyCosts& copies = dryfly_self.header->copies;
    if (in_own_cache) return copies.own_ps_per_kib;
    return stays() ? copies.cached_ps_per_kib[distance(own, other)]
                   : copies.copied_ps_per_kib[crosses_sockets() ? across_sockets : 0];
  }
  CopyLoads loads() const {
    const SharedParts parts = accounts().parts();
    const CopyCore here = rank::NodeAccounts::core_of(own);
    return stays() ? CopyLoads::in_caches(parts, rank::NodeAccounts::core_of(other), here, bytes)
                   : CopyLoads::through_memory(parts, here, rank::NodeAccounts::end_of(other),
                                               rank::NodeAccounts::end_of(own), bytes);
  }
};

// What a core copies in caches into lines that those had who have read from it so far: as in the mean over what they
// have read. 0: nobody has.
std::uint64_t cached_ps_per_kib_of_readers() {
  const std::uint64_t* read_bytes = dryfly_self.page->copier.read_bytes;
  __extension__ using Wide = unsigned __int128;
  Wide bytes = 0;
  Wide ps = 0;
  for (std::size_t distance = 0; distance < wire::distance_count; ++distance) {
    bytes += read_bytes[distance];
    ps += Wide{read_bytes[distance]} * dryfly_self.header->copies.cached_ps_per_kib[distance];
  }
  return bytes == 0 ? 0 : static_cast<std::uint64_t>(ps / bytes);
}

// The same where nobody knows who has what is copied: what is written as with those who have read from this rank, and
// else as in the mean with the others of the node, if that is known.
struct MeanCopy {
  std::size_t bytes;
  bool reads;

  bool stays() const { return accounts().stays_in_caches(bytes); }
  std::uint64_t ps_per_kib() const {
    const wire::CopyCosts& copies = dryfly_self.header->copies;
    const wire::NodeShare& share = dryfly_self.page->share;
    if (const std::uint64_t readers_ps = reads || !stays() ? 0 : cached_ps_per_kib_of_readers(); readers_ps != 0) {
      return readers_ps;
    }
    const std::uint64_t by_place_ps = stays() ? share.cached_ps_per_kib : share.copied_ps_per_kib;
    return by_place_ps != 0 ? by_place_ps : copies.ps_per_kib;
  }
  CopyLoads loads() const {
    CopyLoads loads;
    if (!stays()) loads.add(SharedParts::memory, 2 * bytes);
    const wire::NodeShare& share = dryfly_self.page->share;
    if (!reads || share.across_ppb == 0) return loads;
    __extension__ using Wide = unsigned __int128;
    const auto crossing = static_cast<std::uint64_t>(Wide{bytes} * share.across_ppb / whole_ppb);
    const std::uint32_t sockets = dryfly_self.header->copies.sockets;
    const std::uint32_t other = (share.copies_at.socket + 1U) % sockets;
    if (other != share.copies_at.socket) loads.add(accounts().parts().link(other, share.copies_at.socket), crossing);
    return loads;
  }
};

// Whether the rank holds its node's baton, and can ask for it again at a later instant.
bool may_ask_again() {
  const rank::CallMode mode = dryfly_self.mode();
  const bool has_baton = mode == rank::CallMode::blocking || mode == rank::CallMode::testing;
  return has_baton && !dryfly_self.has_threads();
}

// A library reads one long message after the other in one call: those of the node whose clocks are earlier come first,
// so that they share what the memory carries meanwhile.
void let_others_come_first() {
  if (may_ask_again()) dryfly_self.gate(wire::GateKind::baton);
}

void pass_until(std::uint64_t at_ps) {
  const std::uint64_t now_ps = dryfly_self.now();
  if (at_ps > now_ps) dryfly_self.now_ps.fetch_add(at_ps - now_ps, std::memory_order_relaxed);
}

// `by_kernel`: one that others of the node slow as long as it takes, so each time that it would be over otherwise they
// come first.
template <class Copy>
void charge(const Copy& copy, bool by_kernel = false) {
  const wire::CopyCosts& copies = dryfly_self.header->copies;
  std::uint64_t alone_ps = copy.bytes * copy.ps_per_kib() / 1024;
  if (!copy.stays()) alone_ps = wire::SlowNode::longer(alone_ps, dryfly_self.page->share.slow.memory_ppb);
  const CopyLoads loads = copy.loads();
  rank::NodeAccounts node = accounts();
  if (by_kernel && may_ask_again()) {
    dryfly_self.now_ps.fetch_add(dryfly_self.duration_ps(copies.ps), std::memory_order_relaxed);
    const std::size_t place = rank::NodeAccounts::Copies::idle(node.places());
    auto progress = node.copies().begin(place, dryfly_self.now(), dryfly_self.duration_ps(alone_ps), loads);
    while (!progress.is_over) {
      pass_until(progress.at_ps);
      let_others_come_first();
      progress = node.copies().look(place, dryfly_self.now());
    }
    pass_until(progress.at_ps);
  } else {
    dryfly_self.now_ps.fetch_add(dryfly_self.duration_ps(copies.ps + alone_ps), std::memory_order_relaxed);
    const std::uint64_t end_ps = dryfly_self.now();
    pass_until(node.copies().short_end(end_ps - alone_ps, alone_ps, loads));
  }
}

// What the rank does next counts as a copy, and others may see from where it copies.
bool begins(std::size_t bytes) {
  if (bytes == 0 || phase() != Phase::running || dryfly_self.header == nullptr) return false;
  dryfly_self.has_acted.store(1, std::memory_order_relaxed);
  dryfly_self.page->copier.at = dryfly_self.page->share.copies_at;
  reach_node_memory(bytes);
  return true;
}

// Null: it has not copied yet, or is no rank of this node.
const wire::Copier* copier_of(pid_t process) {
  const auto wanted = static_cast<std::uint32_t>(process);
  const wire::SegmentHeader& header = *dryfly_self.header;
  static std::uint32_t found = 0;  // last time, which most often it is again
  for (std::uint32_t tried = 0; tried < header.rank_count; ++tried) {
    const wire::Copier& copier = rank::NodeAccounts::page_of(header, found).copier;
    if (copier.process == wanted) return &copier;
    found = (found + 1) % header.rank_count;
  }
  return nullptr;
}

// As KeptCopies::copy(), of what the kernel has put into these pieces.
std::optional<std::uint64_t> kept_within(const wire::Copier& other, std::uint64_t from, const iovec* pieces,
                                         std::size_t count, std::size_t bytes) {
  static KeptCopies copies{};
  std::uint64_t contents = other.placed.version(from, bytes);
  if (accounts().stays_in_caches(bytes)) {
    std::size_t left = bytes;
    for (std::size_t i = 0; i < count && left != 0; ++i) {
      const std::size_t length = std::min(left, pieces[i].iov_len);
      contents = fingerprint_of(pieces[i].iov_base, length, contents);
      left -= length;
    }
  }
  return copies.copy({.owner = other.process, .begin = from, .count = bytes, .contents = contents},
                     accounts().cached());
}

}  // namespace

// Who has the very lines that it writes to is not asked: that is who has read this cell of the library's last, and
// which cell it takes depends on what was before virtual time began.
void charge_written(std::size_t bytes) {
  if (begins(bytes)) charge(MeanCopy{bytes, false});
}

void charge_read(const SharedPiece& piece, std::size_t bytes) {
  if (!begins(bytes)) return;
  const wire::Writer* writer = accounts().written().writer(piece, bytes);
  const CopyPlace& own = dryfly_self.page->share.copies_at;
  if (writer == nullptr || !is_known(own) || !is_known(writer->at)) return charge(MeanCopy{bytes, true});
  rank::NodeAccounts::page_of(*dryfly_self.header, writer->rank).copier.read_bytes[distance(own, writer->at)] += bytes;
  charge(Copy{bytes, own, writer->at});
}

void charge_read_of(pid_t process, std::uint64_t from, const iovec* pieces, std::size_t count, std::size_t bytes) {
  if (!begins(bytes)) return;
  let_others_come_first();
  dryfly_self.now_ps.fetch_add(dryfly_self.duration_ps(dryfly_self.header->copies.cross_ps), std::memory_order_relaxed);
  const wire::Copier* other = copier_of(process);
  const CopyPlace& own = dryfly_self.page->share.copies_at;
  if (other == nullptr || !is_known(own) || !is_known(other->at)) return charge(MeanCopy{bytes, true}, true);
  const auto within = kept_within(*other, from, pieces, count, bytes);
  const bool in_own = within.has_value() && *within <= dryfly_self.header->copies.own_cached;
  charge(Copy{bytes, own, within.has_value() ? own : other->at, in_own}, true);
}

void note_placed(const void* target, std::size_t bytes) {
  if (bytes == 0 || phase() != Phase::running || dryfly_self.header == nullptr) return;
  dryfly_self.page->copier.placed.note(target, bytes);
}

void note_writer(const SharedPiece& piece, std::size_t bytes) {
  if (bytes == 0 || phase() != Phase::running || dryfly_self.header == nullptr) return;
  const CopyPlace& own = dryfly_self.page->share.copies_at;
  if (is_known(own))
    accounts().written().write(piece, bytes,
                               {own, rank::NodeAccounts::rank_of(*dryfly_self.header, *dryfly_self.page)});
}

}  // namespace dryfly::preload
