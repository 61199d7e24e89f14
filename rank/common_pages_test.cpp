#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <new>
#include <vector>

#include "rank/common_table.hpp"

using namespace dryfly::rank;
namespace wire = dryfly::wire;

namespace {

constexpr std::uint32_t ranks = 420;
constexpr std::size_t stride = 32768;
constexpr std::size_t page = 4096;

// A segment with nothing but its header and the room for copies.
class Segment {
 public:
  Segment() : descriptor_(memfd_create("common-pages-test", MFD_CLOEXEC)) {
    const std::uint64_t table_bytes = std::uint64_t{ranks} * wire::common_copies * 2 * stride;
    bytes_ = 4 * page + table_bytes;
    REQUIRE(ftruncate(descriptor_, static_cast<off_t>(bytes_)) == 0);
    base = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0));
    header = new (base) wire::SegmentHeader{};
    header->rank_count = ranks;
    header->segment_bytes = bytes_;
    header->table.offset = 4 * page;
    header->table.bytes = table_bytes;
  }
  ~Segment() {
    munmap(base, bytes_);
    close(descriptor_);
  }
  int descriptor() const { return descriptor_; }

  char* base;
  wire::SegmentHeader* header;

 private:
  int descriptor_;
  std::uint64_t bytes_;
};

// As MPICH 5 fills it: itself first, then the others in their order; each entry says whether it is its own.
class Table {
 public:
  explicit Table(std::uint32_t rank) {
    memory_ = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    insert(rank, 0, true);
    std::uint64_t handle = 1;
    for (std::uint32_t other = 0; other < ranks; ++other) {
      if (other != rank) insert(other, handle++, false);
    }
  }
  ~Table() { munmap(memory_, bytes); }

  std::vector<char> content() const { return {memory_, memory_ + bytes}; }
  std::uint64_t& handle(std::uint32_t rank) { return *reinterpret_cast<std::uint64_t*>(entry(rank) + 8); }
  // Of this table's memory: what belongs to this process alone and not to a file.
  std::size_t own_bytes() const {
    constexpr std::uint64_t present = 1ULL << 63, of_file = 1ULL << 61;
    std::ifstream map("/proc/self/pagemap", std::ios::binary);
    std::vector<std::uint64_t> words(bytes / page);
    map.seekg(static_cast<std::streamoff>(reinterpret_cast<std::uintptr_t>(memory_) / page * sizeof words[0]));
    REQUIRE(map.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(words.size() * 8)));
    std::size_t total = 0;
    for (const std::uint64_t word : words) {
      if ((word & present) != 0 && (word & of_file) == 0) total += page;
    }
    return total;
  }

  CommonPages pages() const { return common.pages(ranks); }

  CommonTable common;

 private:
  static constexpr std::size_t bytes = (ranks - 1) * stride + page;
  char* entry(std::uint32_t rank) { return memory_ + 16 + rank * stride; }
  void insert(std::uint32_t rank, std::uint64_t handle, bool own) {
    entry(rank)[0] = own ? 1 : 0;
    this->handle(rank) = handle;
    common.inserted(&this->handle(rank));
  }

  char* memory_;
};

}  // namespace

// Under another allocator, as a sanitizer's, nothing is shared.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool libc_allocates = false;
#else
constexpr bool libc_allocates = true;
#endif

TEST_CASE("a table of addresses keeps its content and gives its pages back") {
  const Segment segment;
  Table first(0), last(ranks - 1), middle(7);
  first.pages().leave_copy(0, segment.base, *segment.header, segment.header->table);
  last.pages().leave_copy(ranks - 1, segment.base, *segment.header, segment.header->table);
  for (Table* table : {&first, &last, &middle}) {
    REQUIRE(table->own_bytes() == ranks * page);
    const auto before = table->content();
    table->pages().share(segment.base, *segment.header, segment.header->table, segment.descriptor());
    if (libc_allocates) CHECK(table->own_bytes() <= page);  // the entry of the rank itself
    if (!libc_allocates) CHECK(table->own_bytes() >= ranks * page);
    CHECK(table->content() == before);
  }
}

TEST_CASE("what a rank writes to its table later is its own") {
  const Segment segment;
  Table first(0), last(ranks - 1), middle(7);
  first.pages().leave_copy(0, segment.base, *segment.header, segment.header->table);
  last.pages().leave_copy(ranks - 1, segment.base, *segment.header, segment.header->table);
  for (Table* table : {&first, &last, &middle})
    table->pages().share(segment.base, *segment.header, segment.header->table, segment.descriptor());
  middle.handle(100) = 4711;
  CHECK(middle.handle(100) == 4711);
  CHECK(first.handle(100) == 100);
  CHECK(last.handle(100) == 101);
}

TEST_CASE("a table that says something else, or whose copies are not there, stays as it is") {
  const Segment segment;
  Table first(0), last(ranks - 1), other(7);
  first.pages().leave_copy(0, segment.base, *segment.header, segment.header->table);
  const std::size_t own = other.own_bytes();
  other.pages().share(segment.base, *segment.header, segment.header->table, segment.descriptor());
  CHECK(other.own_bytes() == own);
  last.pages().leave_copy(ranks - 1, segment.base, *segment.header, segment.header->table);
  for (std::uint32_t rank = 20; rank < 60; ++rank) other.handle(rank) = 0;
  const auto before = other.content();
  other.pages().share(segment.base, *segment.header, segment.header->table, segment.descriptor());
  CHECK(other.content() == before);
}

TEST_CASE("handles that are written elsewhere than into a table move nothing") {
  const Segment segment;
  Table first(0), last(ranks - 1), other(7);
  first.pages().leave_copy(0, segment.base, *segment.header, segment.header->table);
  last.pages().leave_copy(ranks - 1, segment.base, *segment.header, segment.header->table);
  std::uint64_t elsewhere = 0;
  other.common.inserted(&elsewhere);
  const std::size_t own = other.own_bytes();
  other.pages().share(segment.base, *segment.header, segment.header->table, segment.descriptor());
  CHECK(other.own_bytes() == own);
}
