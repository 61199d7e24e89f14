// The requests of PMI-1 (launch/pmi.hpp): a line `cmd=NAME KEY=VALUE ...`, answered by one line; a backslash keeps a
// blank inside a value; MPI_Comm_spawn alone sends several lines, `mcmd=spawn` to `endcmd`. Spoken is version 1.2,
// hydra's: barriers of a group carry a tag and may overlap.
//
// The cost that matters is `get`: MPICH 5 reads the address of every rank on every node, a million gets for 1,024
// single-rank nodes. So it is asked for first, and is a look-up and an append to a buffer that is never given back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/pmi_clients.hpp"
#include "launch/pmi_job.hpp"

namespace dryfly::launch {

class Pmi1 {
 public:
  Pmi1(PmiJob& job, PmiClients& clients);

  void handle_line(int rank, std::string_view line);

  // Of a line without its end, and of what cannot be read.
  void refuse(int rank) { clients_.answer(rank, "cmd=error rc=-1 msg=line_too_long\n"); }

 private:
  struct Spawn {
    bool begun = false;
    int wanted = 0;
    int seen = 0;
  };

  void handle_command(int rank, std::string_view name, std::string_view line);
  void handle_spawn_line(int rank, std::string_view line);
  void handle_service(int rank, std::string_view name, std::string_view line);
  void get(int rank, std::string_view line);
  void initialise(int rank, std::string_view line);
  void enter_barrier(int rank, std::string_view group);

  PmiJob& job_;
  PmiClients& clients_;
  std::string maxes_;  // the answer to get_maxes
  std::vector<Spawn> spawns_;
};

}  // namespace dryfly::launch
