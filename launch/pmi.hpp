// The server's side of PMI, by which the ranks of an MPICH job learn who they are, exchange their addresses and wait
// for one another during MPI_Init: version 1, which clients of MPICH 4.0 to 5.0 speak, and version 2. It is the
// protocol alone: bytes in, bytes out, no file descriptor; launch/supervise.hpp moves the bytes. Here they are cut into
// requests; launch/pmi1.hpp and launch/pmi2.hpp answer these. The wire is as MPICH's src/pmi describes it.
//
// Every client begins with a line of PMI-1. Its `init` says which version it speaks; the ranks of a job all speak one.
//
// A line of dryfly's own, `cmd=watched`, comes from the preload in front of all that MPI says. Without it an MPI talks
// that the preload does not see: linked into the program, say. It would run in real time. And `cmd=left`, when
// MPI_Finalize has come back: MPICH's own `finalize` comes as the process exits, and never from one that ends by _exit
// or becomes another program.
//
// Left out: dynamic processes, and PMIx (launch/pmix.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/pmi1.hpp"
#include "launch/pmi2.hpp"
#include "launch/pmi_clients.hpp"
#include "launch/pmi_job.hpp"

namespace dryfly::launch {

class PmiServer {
 public:
  using Phase = PmiClients::Phase;
  using Abort = PmiClients::Abort;

  PmiServer(std::string job_name, std::vector<int> node_of_rank);
  PmiServer(const PmiServer&) = delete;
  PmiServer& operator=(const PmiServer&) = delete;

  // Takes what a rank has written: any number of requests, the last one possibly cut.
  void receive(int rank, std::string_view bytes);

  // As of PmiClients.
  const std::vector<int>& take_answered() { return clients_.take_answered(); }
  std::string& outgoing(int rank) { return clients_.outgoing(rank); }
  void begin(int rank) { clients_.begin(rank); }
  Phase phase(int rank) const { return clients_.phase(rank); }
  bool anyone_initialised() const { return clients_.anyone_initialised(); }
  const std::optional<Abort>& abort() const { return clients_.first_abort(); }
  const std::optional<int>& unwatched() const { return clients_.unwatched(); }

 private:
  struct Input {
    std::string partial;  // the beginning of a request
    bool lost = false;    // where the next request begins is not known: nothing is read any more
  };

  std::string_view take_request(int rank, std::string_view bytes);
  std::string_view take_message(int rank, std::string_view bytes);

  PmiClients clients_;
  PmiJob job_;
  Pmi1 pmi1_{job_, clients_};
  Pmi2 pmi2_{job_, clients_};
  std::vector<Input> inputs_;
};

}  // namespace dryfly::launch
