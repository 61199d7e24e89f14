// A second core for a job: a thread that brings loads to their targets while the job's ranks run on. It takes them in
// the order in which they are given, one at a time, so that each finds on the links what it would find if the job had
// waited for it, and nothing that comes out depends on the thread.
//
// Both sides use one ring of loads: the answer to a load lies beside it.
#pragma once

#include <cstdint>
#include <thread>

#include "core/motif/job/carriage.hpp"
#include "core/motif/job/progress.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::motif {

class Porter {
 public:
  explicit Porter(Carriage& carriage);
  ~Porter();
  Porter(const Porter&) = delete;
  Porter& operator=(const Porter&) = delete;

  // The load has left its NIC (Carriage::leave). Its place is known by how many have been given before it.
  void give(const Load& load) {
    places_[given_++ & mask].load = load;
    if (given_ % batch == 0) said_.raise(given_);
  }
  std::uint64_t given() const { return given_; }
  static constexpr std::uint64_t places = std::uint64_t{1} << 14;
  bool has_room() const { return given_ - taken_ < places; }
  bool is_idle() const { return given_ == taken_; }
  // Calls tell(load, times) for what has been brought since the last time; first waits until so many have been.
  template <class Tell>
  void take(std::uint64_t least, Tell tell) {
    if (least > taken_) {
      said_.raise(given_);
      brought_.wait_for(least);
    }
    for (const std::uint64_t until = brought_.count(); taken_ < until; ++taken_) {
      const Place& place = places_[taken_ & mask];
      tell(place.load, place.times);
    }
  }

 private:
  struct alignas(64) Place {
    Load load;
    Carried times;
  };
  static constexpr std::uint64_t mask = places - 1;
  static constexpr std::uint64_t batch = 32;  // are told of together: each time costs both sides a line of the cache
  static constexpr std::uint64_t ahead = 8;   // what a load needs is fetched so many before it
  static constexpr std::uint64_t over = ~std::uint64_t{0};

  void work();

  Carriage& carriage_;
  LargeVector<Place> places_;
  std::uint64_t given_ = 0;
  std::uint64_t taken_ = 0;
  Progress said_;     // of given_
  Progress brought_;  // by the thread
  std::thread thread_;
};

}  // namespace dryfly::motif
