#include "core/network/flow/division.hpp"

#include <algorithm>
#include <bit>

namespace dryfly::flow {

void Division::clear() {
  pipes_.clear();
  streams_.clear();
  parts_.clear();
  speeds_.clear();
  crossings_.clear();
  classes_ = 0;
}

std::uint32_t Division::add_pipe(double capacity, bool at_nic) {
  Pipe pipe;
  pipe.capacity = capacity;
  pipe.at_nic = at_nic;
  pipes_.push_back(pipe);
  return static_cast<std::uint32_t>(pipes_.size() - 1);
}

std::uint32_t Division::add_stream(std::uint32_t traffic_class, double limit) {
  streams_.push_back({traffic_class, limit, static_cast<std::uint32_t>(parts_.size()), 1});
  parts_.push_back(crossings_.size());
  speeds_.push_back(1);
  classes_ |= 1U << traffic_class;
  return static_cast<std::uint32_t>(streams_.size() - 1);
}

void Division::add_way(double speed) {
  parts_.push_back(crossings_.size());
  speeds_.push_back(speed);
  ++streams_.back().parts;
}

void Division::solve() {
  rates_.assign(parts_.size(), 0);
  for (Pipe& pipe : pipes_) {
    each_class(classes_, [&](std::uint32_t index) { pipe.allowed[index] = pipe.capacity * ceiling(profile_, index); });
  }
  if (std::has_single_bit(classes_)) {
    const auto only = static_cast<std::uint32_t>(std::countr_zero(classes_));
    solve_class(only);
    return keep_rates(only);
  }
  each_class(classes_, [&](std::uint32_t index) { solve_class(index); });
  for (Pipe& pipe : pipes_) pipe.allowed = parts_of(profile_, classes_, pipe.capacity, pipe.wanted, pipe.at_nic);
  each_class(classes_, [&](std::uint32_t index) { solve_class(index); });
  each_class(classes_, [&](std::uint32_t index) {
    for (Pipe& pipe : pipes_) {
      double others = 0;
      each_class(classes_ & ~(1U << index), [&](std::uint32_t other) { others += pipe.used[other]; });
      pipe.allowed[index] = std::max(0.0, std::min(pipe.capacity - others, pipe.capacity * ceiling(profile_, index)));
    }
    solve_class(index);
    keep_rates(index);
  });
}

void Division::solve_class(std::uint32_t traffic_class) {
  shares_.clear();
  for (const Pipe& pipe : pipes_) shares_.add_link(pipe.allowed[traffic_class]);
  for (const Stream& stream : streams_) {
    if (stream.traffic_class != traffic_class) continue;
    shares_.add_class(1, 1, stream.limit);
    for (std::uint32_t part = 0; part < stream.parts; ++part) {
      const std::size_t place = stream.first_part + std::size_t{part};
      if (part > 0) shares_.add_way(speeds_[place]);
      const std::size_t end = place + 1 < parts_.size() ? parts_[place + 1] : crossings_.size();
      shares_.cross(std::span(crossings_).subspan(parts_[place], end - parts_[place]));
    }
  }
  shares_.solve();
  for (std::uint32_t pipe = 0; pipe < pipes_.size(); ++pipe) {
    pipes_[pipe].used[traffic_class] = pipes_[pipe].wanted[traffic_class] = shares_.load(pipe);
  }
}

void Division::keep_rates(std::uint32_t traffic_class) {
  std::uint32_t number = 0;
  for (const Stream& stream : streams_) {
    if (stream.traffic_class != traffic_class) continue;
    rates_[stream.first_part] = shares_.rate(number);
    for (std::uint32_t part = 1; part < stream.parts; ++part) {
      rates_[stream.first_part + part] = shares_.rate(number, part - 1);
    }
    ++number;
  }
  for (std::uint32_t pipe = 0; pipe < pipes_.size(); ++pipe) pipes_[pipe].full |= shares_.full(pipe);
}

}  // namespace dryfly::flow
