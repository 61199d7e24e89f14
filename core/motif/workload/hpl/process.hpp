// One process of HPL: what it computes, sends and waits for in the factorisation, panel after panel, with look-ahead,
// as programs/hpl/factor.cpp and programs/hpl/panel.cpp do it.
//
// Computing is not done but timed, and lumped together until the next message: nobody can tell the difference.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/motif/flight/traffic.hpp"
#include "core/motif/job/rank.hpp"
#include "core/motif/workload/hpl/broadcast.hpp"
#include "core/motif/workload/hpl/row_exchange.hpp"
#include "core/motif/workload/hpl/setting.hpp"

namespace dryfly::motif::hpl {

class Process {
 public:
  Process(Rank& rank, Setting& setting);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The steps of the setting's stretch.
  Task factor(Rank& me);

 private:
  struct Panel {
    std::uint64_t index = 0;
    std::uint64_t column = 0;
    std::uint64_t width = 0;
    std::uint64_t first_row = 0;  // local, of the rows below the top block
    std::uint64_t rows = 0;       // of these, here
    std::uint32_t owner_row = 0;
    std::uint32_t owner_column = 0;
    PanelBroadcast rounds;
    flight::Schedule broadcast;
  };
  struct Exchange {
    RowExchange rounds;
    flight::Schedule schedule;
  };

  Panel& panel(std::uint64_t index) { return panels_[index % panels_.size()]; }
  void set(Panel& panel, std::uint64_t index) const;
  Task prepare(Rank& me, std::uint64_t index, std::uint64_t oldest);
  Task factor_panel(Rank& me, Panel& panel);
  Task leaf(Rank& me, Panel& panel, std::uint64_t begin, std::uint64_t count);
  Task search_pivot(Rank& me, Panel& panel, std::uint64_t column);
  Task receive(Rank& me, Panel& panel);
  Task update(Rank& me, Panel& panel, std::uint64_t count, bool ahead);
  Task update_alone(Rank& me, Panel& panel, std::uint64_t count, bool ahead);
  Task update_part(Rank& me, Panel& panel, std::uint64_t count, std::uint64_t part, bool ahead);
  void start_exchange(Exchange& exchange, Panel& panel, std::uint64_t count);
  void finish_exchange(Panel& panel, std::uint64_t count);
  Duration update_time(const Panel& panel, std::uint64_t count) const;
  Task multiply(Rank& me, Panel& panel, std::uint64_t count);
  // Until then, looking after messages.
  Task pass(Rank& me, Instant until);

  std::uint64_t active(const Panel& panel, std::uint64_t column) const { return row_ == panel.owner_row ? column : 0; }
  Duration copied(std::uint64_t bytes) const;
  // Phases are those of the panels that count.
  void enter(Rank& me, std::uint16_t phase) const {
    if (counts_) me.enter(phase);
  }
  void work(Duration time) { work_ = work_ + time; }
  // Does what has been lumped together.
  [[nodiscard]] Rank::Computing worked(Rank& me) {
    const Duration all = work_;
    work_ = {};
    return me.compute(all);
  }

  Setting& setting_;
  const Problem& problem_;
  const std::uint32_t row_;
  const std::uint32_t column_;
  const Cyclic row_blocks_;
  const Cyclic column_blocks_;
  flight::Traffic traffic_;
  std::array<Panel, 2> panels_;
  std::array<Exchange, 2> exchanges_;
  std::uint32_t exchange_tag_ = 0;
  Duration work_{};
  bool counts_ = true;
  Instant gpu_free_{};               // only where it works beside the rank
  std::vector<Instant> parts_done_;  // of the update before, by part
};

}  // namespace dryfly::motif::hpl
