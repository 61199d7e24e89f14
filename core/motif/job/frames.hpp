// Memory for the frames of coroutines, and for what else a rank has of its own. A job has millions of them, a few sizes
// only, and each collective takes and gives back one, so they are kept by size and used again, on large pages. A frame
// begins with a word that says where it goes back to.
//
// Left out: giving memory back to the system before the job ends.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <vector>

#include "core/unit/large_pages.hpp"

namespace dryfly::motif {

class Frames {
 public:
  Frames() = default;
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  void* take(std::size_t bytes) {
    const std::size_t kind = kind_of(bytes);
    if (kind >= kinds) return ::operator new(bytes);
    Header* header = free_[kind];
    if (header != nullptr) {
      free_[kind] = header->next;
    } else {
      header = carve(kind * step);
    }
    header->owner = this;
    return header + 1;
  }
  static void give_back(void* frame, std::size_t bytes) {
    const std::size_t kind = kind_of(bytes);
    if (kind >= kinds) return ::operator delete(frame);
    Header* const header = static_cast<Header*>(frame) - 1;
    Frames& owner = *header->owner;
    header->next = owner.free_[kind];
    owner.free_[kind] = header;
  }
  // What has been taken from the system; without what is too long to be kept.
  std::size_t bytes() const { return slabs_.size() * slab_bytes; }

 private:
  // The coroutine's own part begins behind it, aligned as operator new aligns.
  struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) Header {
    union {
      Frames* owner;
      Header* next;
    };
  };
  static constexpr std::size_t step = 32;
  static constexpr std::size_t kinds = 512;  // frames up to 16 KiB
  static constexpr std::size_t slab_bytes = std::size_t{2} << 20;

  static std::size_t kind_of(std::size_t bytes) { return (bytes + sizeof(Header) + step - 1) / step; }

  Header* carve(std::size_t bytes) {
    if (left_ < bytes) {
      next_ = slabs_.emplace_back(slab_bytes).data();
      left_ = slab_bytes;
    }
    std::byte* const here = next_;
    next_ += bytes;
    left_ -= bytes;
    return new (here) Header{};
  }

  std::array<Header*, kinds> free_{};
  std::vector<LargeVector<std::byte>> slabs_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace dryfly::motif
