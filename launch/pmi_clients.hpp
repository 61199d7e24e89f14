// How far each rank of a job has come with its PMI server, and what is to be sent to it: the part of launch/pmi.hpp
// that does not depend on the version of the protocol.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dryfly::launch {

class PmiClients {
 public:
  enum class Phase { untouched, initialised, finalised };
  struct Abort {
    int rank;
    int code;
  };

  explicit PmiClients(std::size_t count) : clients_(count) {}

  std::size_t count() const { return clients_.size(); }
  void answer(int rank, std::string_view text);
  // The ranks for which there are answers to send, since this was last called. Whoever sends them takes them out of
  // outgoing().
  const std::vector<int>& take_answered();
  std::string& outgoing(int rank) { return at(rank).outgoing; }

  void watched(int rank) { at(rank).watched = true; }
  // An MPI begins in the rank: here, or at a server of PMIx.
  void begin(int rank);
  void initialise(int rank, int version);
  void finalise(int rank) { at(rank).phase = Phase::finalised; }
  void abort(int rank, int code);

  int version(int rank) const { return clients_[static_cast<std::size_t>(rank)].version; }
  Phase phase(int rank) const { return clients_[static_cast<std::size_t>(rank)].phase; }
  bool anyone_initialised() const { return anyone_initialised_; }
  const std::optional<Abort>& first_abort() const { return abort_; }
  const std::optional<int>& unwatched() const { return unwatched_; }  // the first rank in which one began unseen

 private:
  struct Client {
    std::string outgoing;  // answers not yet sent
    Phase phase = Phase::untouched;
    int version = 1;  // of the protocol
    bool in_answered = false;
    bool watched = false;
  };

  Client& at(int rank) { return clients_[static_cast<std::size_t>(rank)]; }

  std::vector<Client> clients_;
  std::vector<int> answered_;
  std::vector<int> taken_;
  std::optional<Abort> abort_;
  std::optional<int> unwatched_;
  bool anyone_initialised_ = false;
};

}  // namespace dryfly::launch
