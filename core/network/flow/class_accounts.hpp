// What several traffic classes have of the pipes they meet at: of each pipe the short transfers of a class that wait
// for it, what of them came lately, and the class's streams.
//
// Models of an output what the packet model's arbiter makes of it in the mean (docs/model/classes.md#fair-queueing): a
// queue for each class, served at its part of the pipe among those that have anything (parts_of), so that a class that
// stays within its share waits for no other. Nothing of it is kept while all that was ever submitted is of one class.
// Leaves out single packets: of a class that goes first one waits for none of another, and buckets above ceilings.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/pool.hpp"
#include "core/network/fabric/qos.hpp"
#include "core/network/flow/class_parts.hpp"

namespace dryfly::flow {

struct Pipe;

class ClassAccounts {
 public:
  // Until now everything was of `first_class`; of the pipes those from `first_at_nic` on are NICs that send.
  ClassAccounts(const fabric::FabricSpec& fabric, std::vector<Pipe>& pipes, const Engine& engine,
                std::uint32_t first_at_nic, std::uint32_t first_class)
      : profile_(fabric.qos),
        holds_back_(fabric.congestion_management),
        pipes_(pipes),
        engine_(engine),
        first_at_nic_(first_at_nic),
        first_class_(first_class),
        number_of_(pipes.size(), fabric::none) {}

  // Before it is so in Pipe: so many streams of the class more, or less, and so much more of the pipe.
  void change(std::uint32_t pipe, std::uint32_t traffic_class, int streams, double share);
  // A short transfer takes the pipe for that time.
  void come(std::uint32_t pipe, std::uint32_t traffic_class, std::uint64_t transmission_ps);
  // For how long what comes now waits for the short ones of its class, where the others go on as they did lately.
  std::uint64_t wait_ps(std::uint32_t pipe, std::uint32_t traffic_class);
  // The same for streams, if the class has less than its share, so that the pipe, full or not, serves it at once; never
  // if it has more.
  std::uint64_t among_streams_ps(std::uint32_t pipe, std::uint32_t traffic_class) const;
  // For how long all short ones that wait keep the pipe busy.
  std::uint64_t all_ps(std::uint32_t pipe) const;
  // What short ones leave to streams.
  double left(std::uint32_t pipe);

 private:
  struct Account {
    OfClasses work_ps{};  // that waits, at the full rate of a link
    std::uint64_t at_ps = 0;
    OfClasses came_ps{};  // by and by forgotten
    std::uint64_t came_at_ps = 0;
    std::array<std::uint32_t, fabric::most_classes> streams{};
    OfClasses share{};
  };

  // A pipe as it is now.
  struct At {
    std::uint32_t number = 0;
    const Pipe& pipe;
    std::uint64_t now_ps = 0;
  };

  At at(std::uint32_t pipe) const { return {pipe, pipes_[pipe], engine_.now().ps}; }
  Account& account(const At& at);
  bool at_nic(const At& at) const { return at.number >= first_at_nic_; }
  // The classes (bits) that have streams there; what part of a link the short ones that came lately took, by classes.
  std::uint32_t streaming(const Account& account) const;
  OfClasses lately(const At& at, const Account& account) const;
  double turn(const At& at, const Account& account, std::uint32_t traffic_class) const;
  // What short ones of these classes have, if they want so much beside all streams that there are.
  OfClasses rates(const At& at, const Account& account, std::uint32_t classes, OfClasses wanted) const;
  // Of this class and of all others as they came lately.
  OfClasses rates_lately(const At& at, const Account& account, std::uint32_t traffic_class) const;
  // What short ones have all together of the link of a NIC that sends one of this class.
  double for_shorts(const At& at, const Account& account, std::uint32_t traffic_class) const;
  bool is_within_share(const At& at, const Account& account, std::uint32_t traffic_class) const;
  // What has been carried since it was looked at last.
  void carry(const At& at, Account& account) const;

  const fabric::QosProfile& profile_;
  bool holds_back_;
  std::vector<Pipe>& pipes_;
  const Engine& engine_;
  std::uint32_t first_at_nic_;
  std::uint32_t first_class_;
  std::vector<std::uint32_t> number_of_;  // by pipe
  std::vector<Account> accounts_;
};

}  // namespace dryfly::flow
