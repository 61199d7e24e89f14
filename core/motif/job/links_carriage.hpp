// The level `links` of `dryfly predict`: a load takes its turn on every link of the way that the machine's routing
// algorithm chooses for it, as that finds the links loaded when the load sets out.
//
// Models docs/model/routing.md by the algorithms of core/route themselves, a load in place of a packet; links and
// switches as docs/model/links.md has them. What is on its way to a link counts as waiting there from the start: a link
// never idles beside work that is announced to it. A single packet waits for other such, and for one packet of each
// longer load that waits: switches take inputs in turn.
//
// Leaves out: buffers and credits, so that a hot end-point holds nobody up but those who send to it; classes; the age
// of what a switch knows of another's load; acknowledgements on links. What faults do is in trouble.hpp.
#pragma once

#include <memory>

#include "core/motif/job/backlog.hpp"
#include "core/motif/job/carriage.hpp"
#include "core/motif/job/trouble.hpp"
#include "core/motif/job/wires.hpp"
#include "core/route/routing.hpp"
#include "core/unit/fetch.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {

class LinksCarriage final : public Carriage, private fabric::LoadView {
 public:
  LinksCarriage(const Spec& spec, const Dragonfly& topology, Bytes part = part_bytes);

  Bytes part() const override { return part_; }
  std::optional<Carried> carry(const Load& load) override;
  std::optional<Duration> least_way() const override;
  Instant leave(Load& load) override { return load.ready + Duration{wires_.serialisation_ps(load.size)}; }
  Carried bring(const Load& load) override;
  void prefetch(const Load& load) const override { fetch_line(&target_of(load)); }

 private:
  std::uint64_t own_ps(std::uint32_t port) const override;
  std::uint64_t other_ps(std::uint32_t port) const override { return own_ps(port); }
  bool is_far() const override { return is_far_; }
  void prefetch(std::uint32_t port) const override { fetch_line(&ports_[port]); }
  template <class Toll>
  Carried pass(const Load& load, Toll&& toll);
  // Apart, so that a machine without faults does not pay for it.
  [[gnu::cold, gnu::noinline]] Carried carry_in_trouble(const Load& load);
  [[gnu::cold, gnu::noinline]] void decide_in_trouble(fabric::Path& path, const fabric::RouteQuery& query,
                                                      std::uint32_t draw);
  fabric::Path path(SwitchId from, SwitchId to, std::uint8_t port);
  [[gnu::always_inline]] inline void decide(fabric::Path& path, const fabric::RouteQuery& query, std::uint32_t draw);
  [[gnu::always_inline]] inline void lay_drawn(fabric::Path& path, const fabric::RouteQuery& query,
                                               std::uint32_t draw) const;
  // A port, and what is behind its link: all that a load asks of it is in one line of the cache.
  struct alignas(64) Port {
    Backlog all;
    Backlog packets;  // loads of a single packet
    std::uint64_t flight_ps = 0;
    SwitchId next;
    std::uint32_t next_ports = 0;  // where those of that switch begin
  };
  LargeVector<Port> ports_of_machine() const;
  // Where every way ends.
  const Port& target_of(const Load& load) const {
    return ports_[topology_.first_port(topology_.switch_of(load.to)) + topology_.port_of(load.to)];
  }
  // The load's head is ready to leave by the port at `at_ps`; when it does.
  [[gnu::always_inline]] inline std::uint64_t cross(Port& port, std::uint64_t at_ps, std::uint64_t serial_ps,
                                                    bool packet) const;

  Wires wires_;
  const Bytes part_;
  const Dragonfly& topology_;
  std::unique_ptr<fabric::Routing> routing_;
  RandomStream draws_;
  std::uint64_t loads_ = 0;
  std::uint64_t now_ps_ = 0;
  std::uint64_t part_ps_;
  std::uint64_t packet_ps_;
  LargeVector<Port> ports_;
  const bool is_far_;                 // more of them than caches hold
  std::unique_ptr<Trouble> trouble_;  // with faults only
};

}  // namespace dryfly::motif
