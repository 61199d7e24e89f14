#include "core/motif/collective/tree.hpp"

#include <algorithm>
#include <bit>

namespace dryfly::motif {
namespace {

std::uint32_t lowest_bit(std::uint32_t place) { return place & -place; }

}  // namespace

std::uint64_t Tree::level_width(std::uint32_t place) const {
  std::uint64_t width = 1;
  for (std::uint64_t end = 1; end <= place; end += width) width *= fan_;
  return width;
}

// The first chains are one longer where the places do not come out even.
std::uint32_t Tree::head(std::uint32_t chain) const {
  const std::uint32_t chains = std::min(fan_, places_ - 1);
  const std::uint32_t length = (places_ - 1) / chains;
  return 1 + chain * length + std::min(chain, (places_ - 1) % chains);
}

// The upper half of a range, without its last place, hangs left below that; the lower half hangs right.
Tree::InOrder Tree::in_order(std::uint32_t place) const {
  std::uint32_t first = 0;
  std::uint32_t size = places_;
  std::uint32_t parent = places_ - 1;
  for (;;) {
    const std::uint32_t top = first + size - 1;
    const std::uint32_t right = size / 2;  // places of the lower half
    if (place == top) {
      std::vector<std::uint32_t> children;
      if (size > 1) children.push_back(top - 1);
      if (size > 2) children.push_back(first + right - 1);
      return {parent, children};
    }
    parent = top;
    if (place < first + right && size > 2) {
      size = right;
    } else {
      const std::uint32_t lower = size > 2 ? right : 0;
      first += lower;
      size -= lower + 1;
    }
  }
}

std::uint32_t Tree::parent(std::uint32_t place) const {
  if (place == root()) return place;
  switch (shape_) {
    case Shape::linear:
      return 0;
    case Shape::chain:
      for (std::uint32_t chain = 0; chain < std::min(fan_, places_ - 1); ++chain) {
        if (head(chain) == place) return 0;
      }
      return place - 1;
    case Shape::bushy: {
      if (fan_ == 1) return place - 1;
      const std::uint64_t above = level_width(place) / fan_;
      const std::uint64_t level_begins = (above * fan_ - 1) / (fan_ - 1);
      const std::uint64_t beyond = place - level_begins;
      return static_cast<std::uint32_t>(level_begins - above + beyond % above);
    }
    case Shape::binomial:
      return place ^ lowest_bit(place);
    case Shape::distance_binomial:
      return place ^ std::bit_floor(place);
    case Shape::knomial: {
      std::uint64_t step = fan_;
      while (place % step == 0) step *= fan_;
      return static_cast<std::uint32_t>(place / step * step);
    }
    case Shape::in_order_binary:
      return in_order(place).parent;
  }
  return 0;
}

std::vector<std::uint32_t> Tree::children(std::uint32_t place) const {
  std::vector<std::uint32_t> found;
  const auto add = [&](std::uint64_t child) {
    if (child < places_) found.push_back(static_cast<std::uint32_t>(child));
  };
  switch (shape_) {
    case Shape::linear:
      for (std::uint32_t child = 1; place == 0 && child < places_; ++child) add(child);
      break;
    case Shape::chain:
      if (place == 0) {
        for (std::uint32_t chain = 0; chain < std::min(fan_, places_ - 1); ++chain) add(head(chain));
      } else if (place + 1 < places_ && parent(place + 1) == place) {
        add(place + 1);
      }
      break;
    case Shape::bushy: {
      const std::uint64_t width = fan_ == 1 ? 1 : level_width(place);
      for (std::uint64_t child = 1; child <= fan_; ++child) add(place + width * child);
      break;
    }
    case Shape::binomial: {
      const std::uint32_t end = place == 0 ? std::bit_ceil(places_) : lowest_bit(place);
      for (std::uint32_t bit = end / 2; bit > 0; bit /= 2) add(std::uint64_t{place} + bit);
      break;
    }
    case Shape::distance_binomial:
      for (std::uint64_t bit = place == 0 ? 1 : std::uint64_t{std::bit_floor(place)} * 2; bit < places_; bit *= 2) {
        add(place + bit);
      }
      break;
    case Shape::knomial: {
      std::uint64_t step = 1;
      while (step < places_ && place % (step * fan_) == 0) step *= fan_;
      for (step /= fan_; step > 0; step /= fan_) {
        for (std::uint64_t digit = 1; digit < fan_; ++digit) add(place + step * digit);
      }
      break;
    }
    case Shape::in_order_binary:
      found = in_order(place).children;
      break;
  }
  return found;
}

}  // namespace dryfly::motif
