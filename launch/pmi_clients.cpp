#include "launch/pmi_clients.hpp"

namespace dryfly::launch {

const std::vector<int>& PmiClients::take_answered() {
  taken_.clear();
  taken_.swap(answered_);
  for (const int rank : taken_) at(rank).in_answered = false;
  return taken_;
}

void PmiClients::answer(int rank, std::string_view text) {
  Client& client = at(rank);
  client.outgoing += text;
  if (!client.in_answered) {
    client.in_answered = true;
    answered_.push_back(rank);
  }
}

void PmiClients::begin(int rank) {
  if (!at(rank).watched && !unwatched_) unwatched_ = rank;
}

void PmiClients::initialise(int rank, int version) {
  at(rank).phase = Phase::initialised;
  at(rank).version = version;
  anyone_initialised_ = true;
  begin(rank);
}

void PmiClients::abort(int rank, int code) {
  if (!abort_) abort_ = Abort{rank, code};
}

}  // namespace dryfly::launch
