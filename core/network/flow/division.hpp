// The shares of streams of several traffic classes. Within a class all streams are equal (Shares); among classes each
// pipe is divided as the arbiters of the packet model divide a link (core/network/fabric/qos.hpp): none has more than
// its ceiling, those of higher priority come first, and of the others each has what it wants or its share, whichever is
// less; what a class leaves is the others'.
//
// What a class wants of a pipe is what its streams would have there if they were alone on the machine. Where the
// classes together want more than there is, each is then solved within what is its own, and once more, one after the
// other, with what the others have left; so nothing lies idle that somebody can use.
#pragma once

#include <cstdint>
#include <vector>

#include "core/network/fabric/qos.hpp"
#include "core/network/flow/class_parts.hpp"
#include "core/network/flow/shares.hpp"

namespace dryfly::flow {

class Division {
 public:
  explicit Division(const fabric::QosProfile& profile, double tolerance = 0) : profile_(profile), shares_(tolerance) {}

  // Forgets all, but keeps the memory.
  void clear();
  // Where classes meet at NICs they have their assured shares, elsewhere those of the fabric.
  std::uint32_t add_pipe(double capacity, bool at_nic);
  // As in Shares; what follows is about this stream.
  std::uint32_t add_stream(std::uint32_t traffic_class, double limit);
  // `times` is more than none.
  void cross(std::uint32_t pipe, double times) { crossings_.push_back({pipe, times}); }
  void add_way(double speed);

  void solve();

  std::uint32_t ways(std::uint32_t stream) const { return streams_[stream].parts - 1; }
  double rate(std::uint32_t stream) const { return rates_[streams_[stream].first_part]; }
  double rate(std::uint32_t stream, std::uint32_t way) const { return rates_[streams_[stream].first_part + 1 + way]; }
  bool full(std::uint32_t pipe) const { return pipes_[pipe].full; }

 private:
  struct Pipe {
    double capacity = 0;
    bool at_nic = false;
    bool full = false;
    OfClasses wanted{};   // by classes, at most up to their ceilings
    OfClasses allowed{};  // what each may have
    OfClasses used{};
  };
  struct Stream {
    std::uint32_t traffic_class = 0;
    double limit = 1;
    std::uint32_t first_part = 0;
    std::uint32_t parts = 1;
  };

  // Of one class within what it is allowed: what it has on each pipe.
  void solve_class(std::uint32_t traffic_class);
  void keep_rates(std::uint32_t traffic_class);

  const fabric::QosProfile& profile_;
  std::vector<Pipe> pipes_;
  std::vector<Stream> streams_;
  std::vector<std::size_t> parts_;
  std::vector<double> speeds_;
  std::vector<Shares::Crossing> crossings_;
  std::vector<double> rates_;
  std::uint32_t classes_ = 0;  // bits
  Shares shares_;
};

}  // namespace dryfly::flow
