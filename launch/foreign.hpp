// Ranks that another launcher starts (hydra, prterun, Slurm's srun): where their shims (launch/shim.hpp) come to. A
// shim says which rank it is, gets the rank's environment and program, and tells how the process ended; the rank's own
// process says when it is inside MPI and when it aborts (preload/launcher_line.hpp). All of it goes through one
// abstract socket, since a shim need not be a descendant of dryfly-launch: Slurm's daemon starts those of Slurm.
//
// A shim's connection stays open until release(), and its end means the end of the rank in both directions. The wire is
// text, one line each; R is the rank and P its process:
//
//   rank R              a shim is there. It is answered by a list of texts, each ended by a zero byte, the last one
//                       empty: `env NAME=VALUE`, `default NAME=VALUE` for what the launcher has not set, `unset NAME`,
//                       `arg WORD`, `stdin FILE`; with them comes the rank's PMI socket, if dryfly-launch serves PMI
//   started R P, exit R P CODE, signal R P NUMBER, noexec R ERRNO PATH     from the shim
//   told R NUMBER       from the shim: it was asked to end by this signal, by the launcher perhaps
//   initialised R, finalised R, aborted R CODE                             from the rank, each on its own connection
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dryfly::launch {

struct ForeignReport {
  enum class Kind { arrived, initialised, finalised, aborted, started, exited, killed, noexec, told, vanished };
  Kind kind;
  int rank = -1;
  pid_t pid = -1;
  int value = 0;     // exit code, signal or errno
  std::string path;  // of noexec
};

class ForeignRanks {
 public:
  explicit ForeignRanks(int rank_count);
  ForeignRanks(const ForeignRanks&) = delete;
  ForeignRanks& operator=(const ForeignRanks&) = delete;
  ~ForeignRanks() { release(); }

  const std::string& socket_name() const { return name_; }
  int fd() const { return epoll_fd_; }  // readable when take() has something

  // What was reported since. What a rank has said of itself comes before its end.
  std::vector<ForeignReport> take();

  // The answer to `arrived`. `pmi_fd` goes with it unless it is negative, and is closed here.
  void answer(int rank, const std::vector<std::string>& texts, int pmi_fd);

  // Lets every shim go: it ends what is left of its rank and then itself. Nothing is taken after this.
  void release();

 private:
  struct Connection {
    std::string text;  // the beginning of a line
    int rank = -1;     // of a shim; negative: of a rank's own process
  };

  void accept_all(std::vector<ForeignReport>& reports);
  void read_from(int fd, std::vector<ForeignReport>& reports);
  void understand(int fd, Connection& connection, const std::string& line, std::vector<ForeignReport>& reports);
  void drop(int fd);

  int rank_count_;
  std::string name_;
  int epoll_fd_;
  int listening_fd_;
  std::map<int, Connection> connections_;  // by descriptor
  std::map<int, int> shims_;               // descriptor by rank
};

}  // namespace dryfly::launch
