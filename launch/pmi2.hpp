// The requests of PMI-2 (launch/pmi.hpp): six characters that say how many follow, then `cmd=NAME;KEY=VALUE;...`,
// answered in the same form with the request's `thrid`, by which the client knows which of its threads has asked.
// A value ends at its semicolon; there is no escape. After the `fullinit` puts are seen behind a fence of all ranks,
// and attributes of a node are found by its ranks as soon as one has put them: who wants to wait is answered then.
//
// A client has room for values of 1,024 bytes and cuts longer ones, so a mapping of the ranks that does not fit is not
// given; MPICH then tells nodes apart by their names.
//
// Left out: dynamic processes (spawn, and connecting to another job, are answered with rc=-1).
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "launch/pmi_clients.hpp"
#include "launch/pmi_job.hpp"

namespace dryfly::launch {

class Pmi2 {
 public:
  Pmi2(PmiJob& job, PmiClients& clients) : job_(job), clients_(clients), fencing_(clients.count()) {}

  // `message` without its length.
  void handle_message(int rank, std::string_view message);

  // Of what has no length in front.
  void refuse(int rank) { answer(rank, "error", {}, ";rc=-1;errmsg=message_without_length"); }

 private:
  struct Waiting {
    int rank;
    std::string key;
    std::string thread;
  };

  void handle_value(int rank, std::string_view name, std::string_view message);
  void handle_service(int rank, std::string_view name, std::string_view message);
  void get_node_attribute(int rank, std::string_view message);
  void put_node_attribute(int rank, std::string_view message);
  void fence(int rank, std::string_view thread);
  void answer(int rank, std::string_view name, std::string_view thread, std::string_view rest);
  void answer_found(int rank, std::string_view name, std::string_view thread, const std::string* value);

  PmiJob& job_;
  PmiClients& clients_;
  std::vector<std::deque<std::string>> fencing_;  // of each rank the threads that wait in the fence
  std::vector<Waiting> waiting_;                  // for attributes of nodes
};

}  // namespace dryfly::launch
