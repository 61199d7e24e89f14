// The server's side of PMI-1, by which the ranks of an MPICH job (clients of MPICH 4.0 to 5.0) learn who they are,
// exchange their addresses and wait for one another during MPI_Init. This class is the protocol alone: bytes in,
// bytes out, no file descriptor; launch/supervise.hpp moves the bytes.
//
// The wire, as MPICH's src/pmi describes it: a command is one line `cmd=NAME KEY=VALUE ...`, answered by one line;
// a backslash keeps a blank inside a value; MPI_Comm_spawn alone sends several lines, `mcmd=spawn` to `endcmd`.
// The server speaks version 1.2, hydra's: barriers of a group carry a tag and may overlap.
//
// The cost that matters is `get`: MPICH 5 reads the address of every rank on every node, a million gets for 1,024
// single-rank nodes. So a put stores the whole answer of the later gets, and a get is a look-up and an append to a
// buffer that is never given back.
//
// A line of dryfly's own, `cmd=watched`, comes from the preload in front of all that MPI says. Without it an MPI talks
// that the preload does not see: linked into the program, say. It would run in real time.
//
// Left out: dynamic processes (spawn is answered with rc=-1), PMI-2 and PMIx.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dryfly::launch {

// The value of the key PMI_process_mapping, "(vector,(first node,nodes,ranks per node),...)", which lists the node
// of rank 0, 1, ... in runs. Nodes are renumbered by first appearance, as MPICH does too: most placements then need
// a single run.
std::string process_mapping(const std::vector<int>& node_of_rank);

class PmiServer {
 public:
  enum class Phase { untouched, initialised, finalised };
  struct Abort {
    int rank;
    int code;
  };

  // `job_name` has to differ between jobs that run at one time: MPICH derives shared names from it.
  PmiServer(std::string job_name, std::vector<int> node_of_rank);

  // Takes what a rank has written: any number of commands, the last one possibly cut.
  void receive(int rank, std::string_view bytes);

  // The ranks for which there are answers to send, since this was last called. Whoever sends them takes them out of
  // outgoing().
  const std::vector<int>& take_answered();
  std::string& outgoing(int rank) { return clients_[static_cast<std::size_t>(rank)].outgoing; }

  Phase phase(int rank) const { return clients_[static_cast<std::size_t>(rank)].phase; }
  bool anyone_initialised() const { return anyone_initialised_; }
  const std::optional<Abort>& abort() const { return abort_; }  // the first one
  // An MPI begins in the rank: here, or at a server of PMIx.
  void begin(int rank);
  const std::optional<int>& unwatched() const { return unwatched_; }  // the first rank in which one began unseen

 private:
  struct Client {
    std::string partial;   // the beginning of a command
    std::string outgoing;  // answers not yet sent
    Phase phase = Phase::untouched;
    bool in_answered = false;
    bool in_spawn = false;
    bool watched = false;
    int spawns_wanted = 0;
    int spawns_seen = 0;
  };
  // How often each member waits; the barrier opens when every member does. A member may be ahead by several rounds
  // where its threads use one barrier.
  struct Barrier {
    std::map<int, int> waits_of_member;
    std::size_t waiting = 0;
    std::string answer;
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Texts = std::unordered_map<std::string, std::string, TextHash, std::equal_to<>>;

  void handle_line(int rank, std::string_view line);
  void handle_command(int rank, std::string_view name, std::string_view line);
  void handle_spawn_line(int rank, std::string_view line);
  void handle_service(int rank, std::string_view name, std::string_view line);
  void put(int rank, std::string_view line);
  void enter_barrier(int rank, std::string_view group);
  std::optional<Barrier> make_barrier(std::string_view group) const;
  void answer(int rank, std::string_view text);

  std::string job_name_;
  std::vector<int> node_of_rank_;
  std::string maxes_;  // the answer to get_maxes
  std::vector<Client> clients_;
  std::vector<int> answered_;
  std::vector<int> taken_;
  Texts get_answers_;  // by key
  Texts services_;     // published names
  std::map<std::string, Barrier, std::less<>> barriers_;
  std::optional<Abort> abort_;
  std::optional<int> unwatched_;
  bool anyone_initialised_ = false;
};

}  // namespace dryfly::launch
