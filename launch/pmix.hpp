// The server's side of PMIx, by which the ranks of an Open MPI job learn who they are and exchange their addresses.
// The wire of PMIx differs from release to release, so the server is the one that the job's own MPI library has inside
// (libpmix.so.2 of Open MPI 5, libopen-pal.so.40 of 4.1), loaded into dryfly-launch: it then always speaks as its
// clients do. One server serves all ranks of all nodes; what it tells them of nodes is the plan's.
//
// The library calls back from a thread of its own; this class hands on what matters, and wakes whoever watches fd().
//
// Left out: dynamic processes, publish and lookup, events, tools. A client that asks for them is told that they are not
// supported. Groups do not come here: the ranks meet in virtual time (preload/pmix/group_calls.cpp).
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launch/plan.hpp"
#include "launch/pmi.hpp"
#include "launch/pmix_host.hpp"

namespace dryfly::launch {

class PmixServer {
 public:
  using Phase = PmiServer::Phase;
  using Abort = PmiServer::Abort;

  // Starts the server; SpecError if the library is none. `program`: with its arguments, as ranks may ask for it.
  PmixServer(const Plan& plan, const std::vector<std::string>& program);
  PmixServer(const PmixServer&) = delete;
  PmixServer& operator=(const PmixServer&) = delete;

  // What a rank needs in its environment to find the server, NAME=VALUE.
  std::vector<std::string> environment_of(int rank);

  // Becomes readable when a rank has begun, ended or aborted; clear() before looking.
  int fd() const { return event_fd_; }
  void clear() const;
  Phase phase(int rank) const;
  bool anyone_initialised() const;
  std::vector<int> take_begun();       // ranks that have begun since this was last called
  std::optional<Abort> abort() const;  // the first one

 private:
  struct Client {
    PmixServer* server;
    int rank;
    Phase phase;
  };

  void load(const std::string& library);
  void start();
  void register_job();
  void register_clients();
  void note(Client& client, Phase phase);
  pmix::Process process(std::uint32_t rank) const;

  static pmix::Status on_connected(const pmix::Process*, void* object, pmix::Done, void*);
  static pmix::Status on_finalized(const pmix::Process*, void* object, pmix::Done, void*);
  static pmix::Status on_abort(const pmix::Process*, void* object, int status, const char*, pmix::Process*, std::size_t,
                               pmix::Done, void*);

  const Plan& plan_;
  const std::vector<std::string>& program_;
  pmix::Calls calls_{};
  pmix::Host host_{};
  int event_fd_ = -1;
  mutable std::mutex mutex_;  // of what follows
  std::vector<Client> clients_;
  std::optional<Abort> abort_;
  std::vector<int> begun_;
  bool anyone_initialised_ = false;
};

}  // namespace dryfly::launch
