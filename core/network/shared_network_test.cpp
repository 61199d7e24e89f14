#include "core/network/shared_network.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "testing/fake_network.hpp"

namespace dryfly {
namespace {

constexpr std::uint64_t ns = 1000;

struct Submitter final : TransferSink {
  Submitter(Engine& its_engine, SharedNetwork& network) : engine(its_engine), share(network.open_share()) {
    share.connect(*this);
  }
  void submit(std::uint32_t handle, std::uint32_t target = 1) {
    Transfer transfer;
    transfer.source = {0};
    transfer.target = {target};
    transfer.handle = handle;
    share.submit(transfer);
  }
  void note(const char* what, std::uint32_t handle) {
    heard.push_back(std::to_string(engine.now().ps / ns) + " " + what + " " + std::to_string(handle));
  }
  void delivered(std::uint32_t handle, std::uint32_t) override { note("delivered", handle); }
  void acknowledged(std::uint32_t handle) override { note("acknowledged", handle); }
  void failed(std::uint32_t handle, bool) override { note("failed", handle); }

  Engine& engine;
  SharedNetwork::Share& share;
  std::vector<std::string> heard;
};

// Transfers of the fake network are there after 1,000 ns, acknowledged after 700 more, or fail then.
struct Stand {
  Engine engine;
  FakeNetwork network{engine};
  SharedNetwork shared{engine, network};
  Submitter job{engine, shared};
  Submitter other{engine, shared};
};

using Heard = std::vector<std::string>;

TEST_CASE("each submitter hears of its own transfers, by its own handles, though another has given the same") {
  Stand stand;
  stand.job.submit(7);
  stand.other.submit(7);
  stand.job.submit(UINT32_MAX);
  stand.engine.run(never);
  CHECK(stand.job.heard ==
        Heard{"1000 delivered 7", "1000 delivered 4294967295", "1700 acknowledged 7", "1700 acknowledged 4294967295"});
  CHECK(stand.other.heard == Heard{"1000 delivered 7", "1700 acknowledged 7"});
  CHECK(stand.job.share.submissions() == 2);
}

TEST_CASE("a share counts what is under way of its own, and one that has failed is no longer") {
  Stand stand;
  stand.network.cut(NicId{2});
  stand.other.submit(1);
  stand.network.acknowledgement_time = Duration{4000 * ns};
  stand.job.submit(1, 2);
  CHECK(stand.job.share.under_way() == 1);
  stand.engine.run(Instant{4000 * ns});
  CHECK(stand.job.share.under_way() == 1);
  CHECK(stand.other.share.under_way() == 0);
  stand.engine.run(never);
  CHECK(stand.job.share.under_way() == 0);
  CHECK(stand.job.heard == Heard{"5000 failed 1"});
}

TEST_CASE("a share that is asked to stops the engine when it has nothing left, at that instant") {
  Stand stand;
  stand.job.submit(1);
  stand.network.acknowledgement_time = Duration{4000 * ns};
  stand.other.submit(1);  // under way until 5,000 ns
  stand.job.share.stop_engine_when_idle(true);
  stand.engine.run(never);
  CHECK(stand.engine.now() == Instant{1700 * ns});
  stand.job.share.stop_engine_when_idle(false);
  stand.engine.run(never);
  CHECK(stand.engine.now() == Instant{5000 * ns});
}

}  // namespace
}  // namespace dryfly
