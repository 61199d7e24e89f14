// A state that changes only as a table allows. The table is checked when it is compiled, each change of state when it
// happens: a change that the table does not have ends the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace dryfly {

// One row of a table: a state, its name, what it means, and the states that may follow it, as a set of bits.
template <class State>
struct StateRow {
  State state;
  const char* name;
  const char* meaning;
  std::uint32_t next;
};

template <class... State>
constexpr std::uint32_t any_of(State... states) {
  return (0U | ... | (1U << static_cast<unsigned>(states)));
}

// Rows stand in the order of the enumeration.
template <class State, std::size_t size>
class StateTable {
 public:
  static_assert(size <= 32);

  consteval StateTable(const char* what, const StateRow<State> (&rows)[size]) : what_(what) {
    for (std::size_t i = 0; i < size; ++i) {
      if (static_cast<std::size_t>(rows[i].state) != i || rows[i].next >> (size - 1) > 1) throw "not a table";
      names_[i] = rows[i].name;
      next_[i] = rows[i].next;
    }
  }

  static constexpr std::size_t states() { return size; }
  constexpr const char* what() const { return what_; }
  constexpr const char* name(State state) const { return names_[static_cast<std::size_t>(state)]; }
  constexpr bool allows(State from, State to) const {
    return (next_[static_cast<std::size_t>(from)] >> static_cast<unsigned>(to) & 1) != 0;
  }
  [[noreturn, gnu::cold, gnu::noinline]] void refuse(State from, State to) const {
    std::fprintf(stderr, "dryfly: internal error: %s cannot go from %s to %s\n", what_, name(from), name(to));
    std::abort();
  }

 private:
  const char* what_;
  std::array<const char*, size> names_{};
  std::array<std::uint32_t, size> next_{};
};

#ifdef DRYFLY_NOTES_TRANSITIONS
// Defined by the test that has itself compiled so: it wants to know which changes there have been.
void note_transition(const void* table, unsigned from, unsigned to);
#endif

// Begins in the first state of its table.
template <class State, const auto& table>
class StateMachine {
 public:
  operator State() const { return state_; }
  void move_to(State next) {
    if (__builtin_expect(!table.allows(state_, next), 0)) table.refuse(state_, next);
#ifdef DRYFLY_NOTES_TRANSITIONS
    note_transition(&table, static_cast<unsigned>(state_), static_cast<unsigned>(next));
#endif
    state_ = next;
  }
  bool is_one_of(std::uint32_t states) const { return (states >> static_cast<unsigned>(state_) & 1) != 0; }

 private:
  State state_{};
};

}  // namespace dryfly
